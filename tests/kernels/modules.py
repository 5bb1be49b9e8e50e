# SPDX-License-Identifier: Apache-2.0
"""The stub of the driver, built for a kernel of the cache."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

import machines
from images import Missing, cache, run

source = pathlib.Path(__file__).resolve().parent / "stub"

# What changed for a tracer: until 535 other functions take the calls; from 575 on there is a tracepoint for errors.
drivers = ("535.129.03", "550.54.15", "575.51.02")
# Most drivers come without type information. The module that has it gets it where the kernel's headers allow.
with_types = ("575.51.02",)


def digest(image):
    text = "".join(path.name + path.read_text() for path in sorted(source.iterdir()) if path.is_file())
    return hashlib.sha256((image.release + text).encode()).hexdigest()[:16]


def folder(image):
    """With a folder for each driver."""
    return cache / "stub" / image.release


def build(image):
    """{driver: path of nvidia.ko}; what is built stays until its source changes."""
    if machines.chosen.own_root:
        raise Missing(f"what builds modules for {machines.chosen.name} does not run here, so there is no stub of the driver")
    if not image.modules:
        raise Missing(f"Debian has only the image of {image.release}, and none of its modules")
    if not image.headers.exists():
        raise Missing(f"Debian has no headers of {image.release} any more, so there is no stub of the driver")
    out = {}
    for driver in drivers:
        place = folder(image) / driver
        stamp, module = place / "digest", place / "nvidia.ko"
        if not (stamp.exists() and stamp.read_text() == digest(image)):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(source, place)
            compile_in(place, image, driver)
            stamp.write_text(digest(image))
        out[driver] = module
    return out


def compile_in(place, image, driver):
    # The headers name themselves by the paths they would be installed at.
    makefile = image.headers / "Makefile"
    makefile.write_text(re.sub(r"[^\s=]*/usr/src/", f"{image.headers.parent}/", makefile.read_text()))
    its_own = re.search(r"gcc-\d+", (image.headers / ".kernelvariables").read_text())[0]
    compiler = next((name for name in (its_own, "gcc-12", "gcc") if shutil.which(name)), None)
    if not compiler or not shutil.which("make"):
        raise Missing("no gcc and make for kernel modules")
    # The kernel was configured for the compiler and the pahole that it was made with.
    ours = ["CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT="] if compiler != its_own else []
    if shutil.which("pahole"):
        ours.append("CONFIG_PAHOLE_VERSION=" + run("pahole", "--numeric_version").strip())
    done = subprocess.run(["make", "-s", "-C", image.headers, f"M={place}", f"DRIVER={driver}", f"CC={compiler}",
                           *ours, "modules"], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    if done.returncode:
        raise Missing(f"the stub {driver} does not build for {image.release}:\n{(done.stdout + done.stderr)[:2000]}")
    if driver not in with_types:
        subprocess.run(["objcopy", "--remove-section", ".BTF", "--remove-section", ".BTF.base",
                        place / "nvidia.ko"], check=True)
