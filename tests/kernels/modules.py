# SPDX-License-Identifier: Apache-2.0
"""Builds the stub of the driver for cached kernels."""
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import machines
from images import Missing, cache, run

source = pathlib.Path(__file__).resolve().parent / "stub"

# Versions that differ for a tracer: 535 has other entry functions; 575 has a tracepoint for errors.
drivers = ("535.129.03", "575.51.02")
# Most drivers have no BTF. These versions have it, if the kernel's headers allow generating it.
with_types = ("575.51.02",)


def digest(image):
    text = "".join(path.name + path.read_text() for path in sorted(source.iterdir()) if path.is_file())
    return hashlib.sha256((image.release + text).encode()).hexdigest()[:16]


def folder(image):
    """Folder of the stubs for this kernel, with a subfolder per driver version."""
    return cache / "stub" / image.release


def build(image):
    """{driver: path of nvidia.ko}. Modules are rebuilt if their source changes."""
    if machines.chosen.own_root:
        raise Missing(f"no stub of the driver: Debian's programs for building {machines.chosen.name} modules do not run on this host")
    if not image.modules:
        raise Missing(f"Debian no longer has the modules of {image.release}, only its image")
    if not image.headers.exists():
        raise Missing(f"no stub of the driver: Debian no longer has the headers of {image.release}")
    places = {driver: folder(image) / driver for driver in drivers}
    current = lambda place: (place / "digest").exists() and (place / "digest").read_text() == digest(image)
    if stale := {driver: place for driver, place in places.items() if not current(place)}:
        with path_for_make(image.headers) as headers, tempfile.TemporaryDirectory(prefix="gpusnoop-stub-") as work:
            for driver, place in stale.items():
                compiled = pathlib.Path(work, driver)
                shutil.copytree(source, compiled)
                compile_in(compiled, headers, driver)
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir(parents=True)
                shutil.copy(compiled / "nvidia.ko", place)
                (place / "digest").write_text(digest(image))
    return {driver: place / "nvidia.ko" for driver, place in places.items()}


@contextlib.contextmanager
def path_for_make(headers):
    """The headers' folder, or a temporary copy if make cannot handle its path."""
    if not re.search(r"[\s:]", str(headers)):
        yield headers
        return
    whole = headers.parents[2]  # also has the programs that build modules, and their libraries
    with tempfile.TemporaryDirectory(prefix="gpusnoop-headers-") as copy:
        for name in "usr", "newer":
            if (whole / name).exists():
                shutil.copytree(whole / name, pathlib.Path(copy, name), symlinks=True)
        yield pathlib.Path(copy, headers.relative_to(whole))


def compile_in(place, headers, driver):
    # The headers refer to each other by their installed paths.
    makefile = headers / "Makefile"
    makefile.write_text(re.sub(r"[^\s=]*/usr/src/", f"{headers.parent}/", makefile.read_text()))
    its_own = re.search(r"gcc-\d+", (headers / ".kernelvariables").read_text())[0]
    compiler = next((name for name in (its_own, "gcc-12", "gcc") if shutil.which(name)), None)
    if not compiler or not shutil.which("make"):
        raise Missing("no stub of the driver: install gcc and make")
    # The kernel's configuration describes the compiler and pahole that built the kernel. Replace these values with
    # those of this host.
    overrides = ["CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT="] if compiler != its_own else []
    if shutil.which("pahole"):
        overrides.append("CONFIG_PAHOLE_VERSION=" + run("pahole", "--numeric_version").strip())
    done = subprocess.run(["make", "-s", "-C", headers, f"M={place}", f"DRIVER={driver}", f"CC={compiler}",
                           *overrides, "modules"], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    if done.returncode:
        raise Missing(f"stub {driver} does not build with {headers.name}:\n{(done.stdout + done.stderr)[:2000]}")
    if driver not in with_types:
        subprocess.run(["objcopy", "--remove-section", ".BTF", "--remove-section", ".BTF.base",
                        place / "nvidia.ko"], check=True)
