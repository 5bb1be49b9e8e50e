#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stack depth of BPF programs: stacks.py OBJECT... Kernels before 6.13 reject programs whose frames add up to more than
512 bytes. Newer kernels allocate a stack per function, and do not reject them.

Programs for uprobe sessions are left out, since only newer kernels support these."""
import pathlib
import struct
import sys

limit = 512
frame_unit = 32
r10 = 10


class Object:
    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        at, = struct.unpack_from("<Q", self.data, 0x28)
        size, number, names = struct.unpack_from("<HHH", self.data, 0x3A)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, at + i * size) for i in range(number)]
        self.names = [self.text(names, section[0]) for section in self.sections]
        symbols, = (i for i, section in enumerate(self.sections) if section[1] == 2)
        self.strings = self.sections[symbols][6]
        self.symbols = list(struct.iter_unpack("<IBBHQQ", self.bytes(symbols)))
        self.relocations = {}
        for section in self.sections:
            if section[1] == 9:
                body = self.data[section[4]:section[4] + section[5]]
                self.relocations[section[7]] = {offset: self.symbols[info >> 32]
                                                for offset, info in struct.iter_unpack("<QQ", body)}
        self.functions = {(s[3], s[4]): (self.text(self.strings, s[0]), s[5]) for s in self.symbols if s[1] & 15 == 2}

    def bytes(self, index):
        return self.data[self.sections[index][4]:self.sections[index][4] + self.sections[index][5]]

    def text(self, index, offset):
        start = self.sections[index][4] + offset
        return self.data[start:self.data.index(b"\0", start)].decode()

    def frame(self, place):
        """(bytes of the function's own frame, functions that it calls or passes to helpers as callbacks)."""
        section, start = place
        code = self.bytes(section)[start:start + self.functions[place][1]]
        depth, called, copies = 0, set(), set()
        for offset, (op, registers, off, imm) in zip(range(0, len(code), 8), struct.iter_unpack("<BBhi", code)):
            to, of = registers & 15, registers >> 4
            kind = op & 7
            if kind == 1 and of == r10 or kind in (2, 3) and to == r10:
                depth = max(depth, -off)
            elif op == 0xBF:
                (copies.add if of == r10 else copies.discard)(to)
            elif op == 0x07 and to in copies:
                depth = max(depth, -imm)
                copies.discard(to)
            symbol = self.relocations.get(section, {}).get(start + offset)
            if op == 0x85 and of == 1 and not (symbol and symbol[3] == 0):  # a BPF function, not a kfunc
                called.add((symbol[3], symbol[4] + 8 * (imm + 1) if symbol[1] & 15 == 3 else symbol[4])
                           if symbol else (section, start + offset + 8 * (imm + 1)))
            elif op == 0x18 and symbol and (symbol[3], symbol[4] + (imm if symbol[1] & 15 == 3 else 0)) in self.functions:
                called.add((symbol[3], symbol[4] + (imm if symbol[1] & 15 == 3 else 0)))
        return depth, called

    def deepest(self, place):
        """The call chain that uses most stack: [(function, bytes)]."""
        depth, called = self.frame(place)
        rounded = (max(depth, 1) + frame_unit - 1) // frame_unit * frame_unit
        rest = max((self.deepest(to) for to in called), key=lambda chain: sum(n for _, n in chain), default=[])
        return [(self.functions[place][0], rounded), *rest]

    def programs(self):
        for (section, start), (name, _) in sorted(self.functions.items(), key=lambda item: item[1]):
            if self.names[section] != ".text" and not name.endswith("_session"):
                yield name, self.deepest((section, start))


def main():
    passed = failed = 0
    for path in sys.argv[1:]:
        for name, chain in Object(path).programs():
            total = sum(n for _, n in chain)
            text = f"{pathlib.Path(path).name}: {name}: {total} = {' + '.join(f'{f} {n}' for f, n in chain)}"
            passed, failed = passed + (total <= limit), failed + (total > limit)
            print(f"{'ok' if total <= limit else 'FAIL'} {text}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
