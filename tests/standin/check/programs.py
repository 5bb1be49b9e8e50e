# SPDX-License-Identifier: Apache-2.0
"""The workload programs are linked as their names indicate, and resemble compiled CUDA programs."""
import re
import subprocess

from elf import Elf
from harness import build, check, equal

STUBS = {"_Z6vecaddPKfS0_Pfi": "GLOBAL", "_ZL5saxpyPfPKff": "LOCAL", "_Z6reduceIfEvPKT_PS0_i": "WEAK",
         "_ZN6detail5applyILi4EfEEvT0_Pf": "WEAK", "_Z20__device_stub__scalePfi": "GLOBAL"}
WITH_RUNTIME = ("workload", "workload13", "workload-nopie", "workload-static", "workload-static-stripped")


def cuda_needed(elf):
    return [name for name in elf.dynamic(1) if name.startswith("libcuda")]


@check
def forms_need_the_expected_libraries():
    want = {"workload": ["libcudart.so.12"], "workload13": ["libcudart.so.13"], "workload-nopie": ["libcudart.so.12"],
            "workload-static": [], "workload-static-stripped": [], "workload-driver": ["libcuda.so.1"],
            "workload-dlopen": []}
    for name, needed in want.items():
        elf = Elf(build / name)
        equal(cuda_needed(elf), needed, name)
        equal(elf.type, 2 if name == "workload-nopie" else 3, name)
        equal(elf.dynamic(29), ["$ORIGIN"], name)


@check
def kernels_have_stubs_and_code_sections():
    for name in WITH_RUNTIME:
        elf = Elf(build / name)
        assert ".nv_fatbin" in elf.sections and ".nvFatBinSegment" in elf.sections, name
        equal(elf.sections[".nvFatBinSegment"].size, 24, name)
        if name.endswith("stripped"):
            continue
        symbols = {s.name: s for s in elf.symbols(".symtab")}
        for stub, bind in STUBS.items():
            equal((symbols[stub].bind, symbols[stub].type), (bind, 2), f"{name} {stub}")
    for name in ("workload-driver", "workload-dlopen"):
        assert ".nv_fatbin" not in Elf(build / name).sections, name


@check
def static_runtime_shows_in_symtab_only():
    elf = Elf(build / "workload-static")
    names = {s.name for s in elf.symbols(".symtab") if s.section}
    assert {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMalloc", "cudaMemcpy2DAsync"} <= names
    dynamic = {s.name for s in elf.symbols(".dynsym")}
    assert not any(re.match(r"(__)?cuda", n) for n in dynamic)
    stripped = Elf(build / "workload-static-stripped")
    assert ".symtab" not in stripped.sections
    assert not any(re.match(r"(__)?cuda", s.name) for s in stripped.symbols(".dynsym"))
    assert b"libcuda.so.1" in stripped.data and b"cuGetProcAddress" in stripped.data


@check
def registration_code_matches_the_name_scan():
    """Before each call: lea stub(%rip),%rsi; lea name(%rip),%rdx; mov %rdx,%rcx. (Without PIE: mov $imm,%esi.)"""
    for name in ("workload", "workload13", "workload-static"):
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", build / name], check=True, capture_output=True,
                              text=True).stdout
        body = re.search(r"<[^>]*__cudaRegisterAll[^>]*>:\n(.*?)\n\n", code, re.S)[1]
        calls = [c for c in re.split(r"call .*<__cudaRegisterFunction", body)[:-1]]
        equal(len(calls), 5, name)
        for part in calls:
            assert re.search(r"lea .*\(%rip\),%rsi", part) and re.search(r"mov +%rdx,%rcx", part), f"{name}: {part}"
            assert re.search(r"mov +\$0xffffffff,%r8d", part), f"{name}: {part}"
