# SPDX-License-Identifier: Apache-2.0
"""The stand-in libraries resemble the real ones: names, sizes, code bytes, sonames, version nodes, symbol tables."""
import re
import struct
import subprocess

from elf import Elf
from harness import build, check, equal, source, table

PUSH = [bytes([0x50 + register]) for register in range(8)]


def runtime_names(major):
    return {name for name, *majors in table("runtime_exports.txt") if major in majors}


@check
def driver_exports_the_whole_list_and_nothing_else():
    names = set(Elf(build / "libcuda.so.1").exports())
    control = {name for name in names if name.startswith("standin_")}
    equal(control, {"standin_next_result", "standin_next_delay_ns", "standin_next_block_ns", "standin_next_inside", "standin_interrupts_sleep", "standin_counts",
                    "standin_holdings", "standin_forget_holdings", "standin_freed", "standin_next_update_result",
                    "standin_graphs", "standin_graph_generation", "standin_graph_kernels", "standin_forget_graphs",
                    "standin_is_capturing", "standin_trace", "standin_traced_name"})
    equal(names - control, {name for name, _ in table("driver_exports.txt")})
    assert len(names) > 650


@check
def driver_exports_are_thunks():
    elf = Elf(build / "libcuda.so.1")
    slots, states = set(), set()
    for name, symbol in elf.exports().items():
        if name.startswith("standin_"):
            continue
        code = elf.bytes_at(symbol.address, 30)
        equal((symbol.bind, symbol.visibility, symbol.size), ("GLOBAL", "DEFAULT", 30), name)
        equal(code[0:2] + code[6:10], bytes.fromhex("813d00ba1c32"), name)  # cmpl $0x321cba00, state(%rip)
        equal(code[10:12], bytes.fromhex("740c"), name)                     # je +12
        equal(code[12:14], bytes.fromhex("ff25"), name)                     # jmp *slot(%rip)
        equal(code[24:30], bytes.fromhex("b804000000c3"), name)             # mov $4, %eax; ret
        states.add(symbol.address + 10 + struct.unpack_from("<i", code, 2)[0])
        slots.add(symbol.address + 18 + struct.unpack_from("<i", code, 14)[0])
    data = elf.sections[".data"]
    equal(len(states), 1, "state words")
    equal(len(slots), len(table("driver_exports.txt")), "slots")
    assert all(data.address <= s < data.address + data.size for s in slots | states)


@check
def driver_is_stripped_and_named():
    elf = Elf(build / "libcuda.so.1")
    equal((build / "libcuda.so.1").resolve().name, "libcuda.so.999.0")
    equal(elf.dynamic(14), ["libcuda.so.1"])
    assert ".symtab" not in elf.sections and ".note.gnu.build-id" in elf.sections
    equal(elf.version_names(), {})


@check
def every_driver_implementation_has_an_export():
    names = {name for name, _ in table("driver_exports.txt")}
    for file in (source / "driver").glob("*.cpp"):
        for name in re.findall(r"^(?:DRIVER|SYNC|ASYNC)\((cu\w+)\b", file.read_text(), re.M):
            assert name in names, f"{file.name}: {name}"


@check
def runtimes_have_names_and_versions():
    for major, file in (("12", "libcudart.so.12.9.99"), ("13", "libcudart.so.13.0.99")):
        soname = f"libcudart.so.{major}"
        elf = Elf(build / soname)
        equal((build / soname).resolve().name, file)
        equal(elf.dynamic(14), [soname])
        assert "libcuda.so.1" not in elf.dynamic(1)
        assert ".note.gnu.build-id" in elf.sections and ".symtab" not in elf.sections
        exports = elf.exports()
        nodes = elf.version_names()
        equal({nodes[s.version] for s in exports.values()}, {soname})
        equal({n for n in exports if not n.startswith("standin_")}, runtime_names(major), soname)


@check
def runtime_functions_begin_with_push():
    for soname in ("libcudart.so.12", "libcudart.so.13"):
        elf = Elf(build / soname)
        for name, symbol in elf.exports().items():
            if name.startswith("standin_"):
                continue
            code = elf.bytes_at(symbol.address, 2)
            push = code[1:] if code[:1] == b"\x41" else code[:1]  # 41: r8 to r15
            assert push in PUSH, f"{soname} {name} {code.hex()}"


@check
def double_underscore_launch_is_a_tail_jump():
    for soname in ("libcudart.so.12", "libcudart.so.13"):
        elf = Elf(build / soname)
        exports = elf.exports()
        for suffix in ("", "_ptsz"):
            symbol = exports["__cudaLaunchKernel" + suffix]
            code = elf.bytes_at(symbol.address, 10)
            equal(code[:6].hex(), "554889e55de9", soname)  # push; mov; pop; jmp
            target = symbol.address + 10 + struct.unpack_from("<i", code, 6)[0]
            equal(target, exports["cudaLaunchKernel" + suffix].address, soname)


@check
def static_runtime_is_hidden():
    out = subprocess.run(["readelf", "-sW", build / "libcudart_static.a"], check=True, capture_output=True, text=True)
    seen = {}
    for line in out.stdout.splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[3] == "FUNC" and re.fullmatch(r"(__)?cuda\w+", fields[7]):
            seen[fields[7]] = (fields[4], fields[5])
    equal(set(seen), runtime_names("12"))
    equal(set(seen.values()), {("GLOBAL", "HIDDEN")})
