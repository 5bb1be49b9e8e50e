# SPDX-License-Identifier: Apache-2.0
"""Kernel registrations read from the code of real files: stripped libraries of distributions and NVIDIA, and a small
program in all forms that compilers generate."""
import json
import pathlib
import subprocess

from harness import Skip, case, check, equal
from vendor import each, fetched_file, inspect, programs

registered = programs / "registered"
in_launcher = {"_Z15external_kernelPf", "_ZL12local_kerneli", "_ZN5space15template_kernelIfLi3EEEvT_",
               "_ZN5space15template_kernelIiLi4EEEvT_"}
# nvcc drops the L, which marks internal linkage.
in_forms = [in_launcher, {name.replace("_ZL12", "_Z12") for name in in_launcher}]


def scan(path):
    """({stub address: name}, handle variables, totals)."""
    lines = [json.loads(line) for line in inspect("scan", path).splitlines()]
    kernels = {line["stub"]: line["name"] for line in lines if "name" in line}
    check(all(kernels.values()), "a registration has no name when its code is read again")
    check(all(line["kept"] for line in lines if "variable" in line), "a handle variable is not found when its code is read again")
    return kernels, [line for line in lines if "variable" in line], lines[-1]


def symbols(path):
    """{address: name} of exported functions."""
    run = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, capture_output=True, text=True)
    fields = [line.split() for line in run.stdout.splitlines()]
    return {int(f[1], 16): f[7].partition("@")[0] for f in fields if len(f) > 7 and f[3] == "FUNC" and f[6] != "UND"}


def agree_with_symbols(path, kernels):
    """Symbols of stubs match the kernels' names. A few may differ, since an address can have several symbols."""
    exported = symbols(path)
    wrong = {name: exported[stub] for stub, name in kernels.items()
             if stub in exported and name not in exported[stub].replace("__device_stub__", "")}
    check(len(wrong) <= len(kernels) // 1000, f"names that are not their stubs' symbols: {dict(list(wrong.items())[:5])}")


@case
def bart():
    path = fetched_file("names/bart/bart")
    kernels, _, total = scan(path)
    equal((total["sites"], total["read"], len(kernels)), (118, 118, 118), "calls, read, kernels")
    agree_with_symbols(path, kernels)


@case
def libggml_cuda():
    """A library of 574 MB with 12 MB of code. There are fewer kernels than calls, because several objects register the
    same kernel."""
    path = fetched_file("names/ggml/libggml-cuda.so")
    kernels, _, total = scan(path)
    check(total["sites"] > 5000, f"too few calls: {total}")
    check(total["read"] * 7112 >= total["sites"] * 7035, f"too few calls could be read: {total}")
    check(len(kernels) * 100 >= total["sites"] * 99, f"too few kernels: {total}")
    check(total["peak_kib"] < 100 << 10, f"too much memory: {total}")
    agree_with_symbols(path, kernels)


@case
def pycuda():
    """PyCUDA calls the driver, and registers no kernels."""
    kernels, _, total = scan(next(fetched_file("names/pycuda").glob("_driver*.so")))
    equal((total["sites"], kernels), (0, {}), "calls")


@case(each=each(("libcublas.so.13", "libcusolver.so.12", "libnccl.so.2")))
def of_the_toolkit(name):
    """Stripped libraries of the CUDA 13 toolkit, which link its runtime statically."""
    path = pathlib.Path("/usr/local/cuda/lib64") / name
    if not path.exists():
        raise Skip(f"{path} does not exist")
    kernels, handles, total = scan(path)
    check(len(kernels) >= 91 and total["read"] == total["sites"], f"too few kernels, or not all calls could be read: {total}")
    equal({h["stub"] for h in handles}, set(kernels), "stubs whose handles are kept")


forms = [f"{compiler}-{o}-{form}" for compiler, some in (("12", ("static", "shared", "library")),
                                                       ("13", ("static", "shared", "library")),
                                                       ("clang", ("shared", "static", "nopie", "library")))
         for o in ("O0", "O3") for form in some]


@case(each=each(forms))
def compiled(form):
    path = registered / form
    if not path.exists():
        raise Skip(f"this machine's compilers cannot build {form}")
    kernels, handles, total = scan(path)
    check(set(kernels.values()) in in_forms, f"unexpected names: {kernels}")
    equal((total["sites"], total["read"]), (4, 4), "calls, read")
    equal({h["stub"] for h in handles}, set(kernels) if form.startswith("13") else set(), "stubs whose handles are kept")
