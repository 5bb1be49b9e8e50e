# SPDX-License-Identifier: Apache-2.0
"""Properties of this machine, and whether tracing and CUDA work on it."""
import datetime
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys


def output_of(*command, seconds=120, **options):
    """Exit status (None: timeout), standard output, standard error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds,
                              stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired:
        return None, "", f"did not finish within {seconds} s"
    return done.returncode, done.stdout, done.stderr


def json_of(*command, **options):
    """(JSON output of a Python program, None), or (None, its last error message)."""
    code, out, error = output_of(sys.executable, "-B", *command, **options)
    return (json.loads(out), None) if code == 0 else (None, (error.strip().splitlines() or [f"exited with {code}"])[-1])


def first_line(pattern):
    for path in sorted(glob.glob(pattern)):
        try:
            return pathlib.Path(path).read_text(errors="replace").splitlines()[0]
        except (OSError, IndexError):
            pass
    return None


def libraries(name):
    """Files with this name in the dynamic loader's cache."""
    lines = output_of("sh", "-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p")[1].splitlines()
    return [line.rpartition(" => ")[2] for line in lines if line.split()[:1] == [name] and "x86-64" in line]


def site_folders(python):
    """Package folders of a Python interpreter."""
    code = "import site, sys; print(*site.getsitepackages(), site.getusersitepackages(), *sys.path, sep='\\n')"
    return list(filter(None, output_of(python, "-c", code)[1].splitlines())) if shutil.which(python) else []


def missing_module(python, module):
    """Why Python programs cannot import a module; None if they can."""
    found = shutil.which(python) and output_of(python, "-c", f"import {module}")[0] == 0
    return None if found else f"{python} has no {module}"


def devices():
    """Models of the devices, from the driver's files in /proc."""
    texts = (pathlib.Path(path).read_text(errors="replace")
             for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")))
    return [found[1].strip() for text in texts if (found := re.search(r"^Model:(.*)$", text, re.M))]


def machine(root):
    bundle = root / "VERSION"
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "kernel": os.uname().release, "machine": os.uname().machine,
            "kernel_driver": first_line("/proc/driver/nvidia/version"), "devices": devices(),
            "gpusnoop": bundle.read_text().strip() if bundle.exists() else None}


def bpf(build):
    """Returns the output of --info, and why the tools cannot trace (None: they can)."""
    code, out, error = output_of(build / "cudalaunch", "--info", "--json")
    try:
        info = json.loads(out)
    except json.JSONDecodeError:
        return None, f"--info exited with {code}: {error.strip()[-300:]}"
    works = output_of(build / "cudalaunch", "-p", str(os.getpid()), "-d", "0.1", "--json")
    return info, None if works[0] == 0 else works[2].strip()[-300:] or f"cudalaunch exited with {works[0]}"


def no_device(build):
    """Why the workload cannot use a device; None if it can."""
    code, _, error = output_of(build / "standin/workload-dlopen", "launch vecadd 1; sync 1",
                               env=os.environ | {"WORKLOAD_DEVICE": "1"})
    return None if code == 0 else error.strip().removeprefix("workload: skipped: ") or f"the workload exited with {code}"
