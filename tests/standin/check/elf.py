# SPDX-License-Identifier: Apache-2.0
"""Minimal reader of 64-bit little-endian ELF files: sections, symbols, dynamic entries, bytes at an address."""
import collections
import struct

Section = collections.namedtuple("Section", "name type flags address offset size link")
Symbol = collections.namedtuple("Symbol", "name type bind visibility section address size version")

BINDS = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK", 10: "UNIQUE"}


def text(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


class Elf:
    def __init__(self, path):
        self.data = open(path, "rb").read()
        self.type, = struct.unpack_from("<H", self.data, 16)
        table, = struct.unpack_from("<Q", self.data, 40)
        entry, count, names = struct.unpack_from("<HHH", self.data, 58)
        raw = [struct.unpack_from("<IIQQQQI", self.data, table + i * entry) for i in range(count)]
        self.sections = {}
        self.by_index = []
        for name, *rest in raw:
            section = Section(text(self.data, raw[names][4] + name), *rest)
            self.sections[section.name] = section
            self.by_index.append(section)

    def bytes_at(self, address, n):
        for s in self.by_index:
            if s.flags & 2 and s.type != 8 and s.address <= address < s.address + s.size:
                start = s.offset + address - s.address
                return self.data[start:start + n]
        raise KeyError(hex(address))

    def symbols(self, table):
        if table not in self.sections:
            return []
        section = self.sections[table]
        strings = self.by_index[section.link].offset
        versions = self.sections.get(".gnu.version") if table == ".dynsym" else None
        out = []
        for i in range(section.size // 24):
            name, info, other, index, address, size = struct.unpack_from("<IBBHQQ", self.data, section.offset + i * 24)
            version = struct.unpack_from("<H", self.data, versions.offset + 2 * i)[0] & 0x7fff if versions else 0
            out.append(Symbol(text(self.data, strings + name), info & 15, BINDS.get(info >> 4),
                              ("DEFAULT", "INTERNAL", "HIDDEN", "PROTECTED")[other & 3], index, address, size, version))
        return out

    def exports(self):
        """Exported functions by name."""
        return {s.name: s for s in self.symbols(".dynsym") if s.section and s.type == 2}

    def dynamic(self, tag):
        """Values of the string entries with this tag: 1 NEEDED, 14 SONAME, 29 RUNPATH."""
        section = self.sections[".dynamic"]
        strings = self.by_index[section.link].offset
        pairs = (struct.unpack_from("<QQ", self.data, section.offset + i) for i in range(0, section.size, 16))
        return [text(self.data, strings + value) for key, value in pairs if key == tag]

    def version_names(self):
        """Version definitions: number -> name."""
        section = self.sections.get(".gnu.version_d")
        if not section:
            return {}
        out, at = {}, section.offset
        strings = self.by_index[section.link].offset
        while True:
            _, _, index, _, _, aux, following = struct.unpack_from("<HHHHIII", self.data, at)
            name, _ = struct.unpack_from("<II", self.data, at + aux)
            out[index] = text(self.data, strings + name)
            if not following:
                return out
            at += following
