#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory order on arm64: order.py OBJECT... checks that accesses that publish data compile to ordered instructions.

Races cannot be reproduced here, since an emulator has the memory model of its host. So this script inspects the
compiled instructions. In BPF objects for arm64, it checks each source line that calls store_ordered() or load_acquire()
(bpf/base/machine.bpf.h); the objects' line information locates its instructions. It also compiles
src/base/shared_word.hpp with $CLANG. Other files must not use compiler barriers or fences, which do not order memory on
arm64."""
import os
import pathlib
import re
import struct
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "tests/kernels"))
from stacks import Object, r10  # noqa: E402

atomic_word = 0xDB  # BPF_STX | BPF_ATOMIC | BPF_DW
with_fetch = 0x01  # BPF_FETCH: the instruction returns the old value, which makes it a full barrier
plain_store = {0x62, 0x63, 0x6A, 0x6B, 0x72, 0x73, 0x7A, 0x7B}
ordered = re.compile(r"\b(?:store_ordered|load_acquire)\(")
compiler_only = {"bpf": re.compile(r"\bbarrier\(\)|__ATOMIC_|\bsmp_"),
                 "src": re.compile(r"atomic_signal_fence|memory_order_relaxed|MEMBARRIER_CMD")}


def strings_of(btf):
    header, at, size = struct.unpack_from("<I8xII", btf, 4)
    return btf[header + at:header + at + size]


def line_records(binary):
    """Yields (section, offset of the instruction, file, line)."""
    index = {name: i for i, name in enumerate(binary.names)}
    strings, info = strings_of(binary.bytes(index[".BTF"])), binary.bytes(index[".BTF.ext"])

    def text(offset):
        return strings[offset:strings.index(b"\0", offset)].decode()

    header, at, size = struct.unpack_from("<I8xII", info, 4)
    at += header
    record_size, = struct.unpack_from("<I", info, at)
    end, at = at + size, at + 4
    while at < end:
        section, number = struct.unpack_from("<II", info, at)
        at += 8
        for _ in range(number):
            offset, name, _, where = struct.unpack_from("<IIII", info, at)
            yield index[text(section)], offset, text(name), where >> 10
            at += record_size


def instructions_of(binary):
    """{(file, line): [(op, destination, imm)]}: instructions of each source line."""
    made, records = {}, sorted(line_records(binary))
    for record, after in zip(records, records[1:] + [(-1, 0, "", 0)]):
        section, offset, name, line = record
        code = binary.bytes(section)
        end = after[1] if after[0] == section else len(code)
        path = str(pathlib.Path(name))
        made.setdefault((path[path.rfind("bpf/"):], line), []).extend(
            (op, registers & 15, imm) for op, registers, _, imm in struct.iter_unpack("<BBhi", code[offset:end]))
    return made


def is_full_barrier(instruction):
    op, _, imm = instruction
    return op == atomic_word and imm & with_fetch


def stores_plainly(instruction):
    op, destination, _ = instruction
    return op in plain_store and destination != r10


def published_lines():
    """{(file, line): text} of lines that publish data."""
    return {(str(path.relative_to(root)), number): text.strip()
            for path in sorted(root.glob("bpf/**/*.[ch]")) if path.name != "machine.bpf.h"
            for number, text in enumerate(path.read_text().splitlines(), 1) if ordered.search(text)}


def faults_of_objects(paths):
    wanted = published_lines()
    seen = set()
    for path in paths:
        for place, code in instructions_of(Object(path)).items():
            if place not in wanted:
                continue
            seen.add(place)
            if not any(map(is_full_barrier, code)):
                yield f"{path}: {place[0]}:{place[1]} has no atomic instruction with a result: {wanted[place]}"
            if any(map(stores_plainly, code)):
                yield f"{path}: {place[0]}:{place[1]} has a plain store: {wanted[place]}"
    for place in wanted.keys() - seen:
        yield f"{place[0]}:{place[1]} has no code in any object: {wanted[place]}"
    print(f"found the code of {len(seen)} of {len(wanted)} lines")


def faults_of_front_end():
    source = ('#include "base/shared_word.hpp"\n'
              "long load(const volatile long& word) { return gpusnoop::load_acquire(word); }\n"
              "void store(volatile long& word) { gpusnoop::store_release(word, 1L); }\n")
    command = [os.environ.get("CLANG", "clang"), "--target=aarch64-linux-gnu", "-x", "c++", "-std=c++20", "-O2", "-nostdinc",
               f"-I{root / 'src'}", "-S", "-o", "-", "-"]
    assembly = subprocess.run(command, input=source, text=True, stdout=subprocess.PIPE, check=True).stdout
    for instruction in (r"ldap?r\b", r"stlr\b"):
        if not re.search(rf"^\s*{instruction}", assembly, re.M):
            yield f"src/base/shared_word.hpp: no {instruction} in this code:\n{assembly}"


def faults_of_sources():
    for folder, pattern in compiler_only.items():
        for path in sorted((root / folder).rglob("*.[chp]*")):
            for number, text in enumerate(path.read_text().splitlines(), 1):
                if pattern.search(text) and path.name != "machine.bpf.h":
                    yield f"{path.relative_to(root)}:{number}: does not order memory on arm64: {text.strip()}"


def main():
    faults = [*faults_of_objects(sys.argv[1:]), *faults_of_front_end(), *faults_of_sources()]
    print(*faults, sep="\n")
    return 1 if faults or len(sys.argv) == 1 else 0


sys.exit(main())
