# SPDX-License-Identifier: Apache-2.0
"""The stub of the driver, built for a kernel of the cache."""
import hashlib
import os
import pathlib
import shutil
import subprocess

from images import Missing, cache

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
    # The headers name the other half of themselves by the path they would be installed at.
    common = image.headers.with_name(image.headers.name.replace("-amd64", "-common"))
    (image.headers / "Makefile").write_text(f"include {common}/Makefile\n")
    compiler = next((name for name in ("gcc-12", "gcc") if shutil.which(name)), None)
    if not compiler or not shutil.which("make"):
        raise Missing("no gcc and make for kernel modules")
    done = subprocess.run(["make", "-s", "-C", image.headers, f"M={place}", f"DRIVER={driver}", f"CC={compiler}",
                           "modules"], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    if done.returncode:
        raise Missing(f"the stub {driver} does not build for {image.release}:\n{done.stdout}{done.stderr}")
    if driver not in with_types:
        subprocess.run(["objcopy", "--remove-section", ".BTF", "--remove-section", ".BTF.base",
                        place / "nvidia.ko"], check=True)
