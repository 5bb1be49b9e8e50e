#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Python interpreters that Debian does not package, for the emulated arm64 machine: those of Ubuntu 20.04, 22.04
and 24.04, from Ubuntu's sources. Takes four minutes each, once. They are stored in the emulated machine's root.

    scripts/install-deps cross; tests/kernels/pythons.py"""
import os
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

import images  # noqa: E402
import machines  # noqa: E402
import other_root  # noqa: E402

sources = {  # {version: SHA-256 of the source archive}
    "3.8.2": "2646e7dc233362f59714c6193017bb2d6f7b38d6ab4a0cb5fbac5c36c4d845df",
    "3.10.4": "80bf925f571da436b35210886cf79f6eb5fa5d6c571316b73568343451f77a19",
    "3.12.3": "56bfef1fdfc1221ce6720e43a661e3eb41785dd914ce99698d8c7896af4bdaa1",
}
libraries = "libffi8", "libffi-dev"  # in addition to other_root.packages_elsewhere
programs = "aarch64-linux-gnu-gcc", "gcc", "make"
unneeded = "test", "tests", "idlelib", "lib2to3", "tkinter", "ensurepip", "__pycache__"


def fetch(python, version, folder):
    url = f"{images.mirror('ubuntu')}/pool/main/p/{python}/{python}_{version}.orig.tar.xz"
    # Uses apt's proxies, certificates and passwords, unlike urllib.
    try:
        images.run("/usr/lib/apt/apt-helper", "-q", "-o", "APT::Sandbox::User=root", "download-file",
                   url, "source.tar.xz", f"SHA256:{sources[version]}", cwd=folder)
    except images.Missing as reason:
        raise images.Missing(f"cannot fetch {url}: {reason}")
    images.run("tar", "-xf", "source.tar.xz", "--strip-components=1", cwd=folder)


def build(version, place, root):
    """Builds a native interpreter, which cross-compiling needs in the same version, then the one for arm64."""
    python = f"python{version.rpartition('.')[0]}"
    fetch(python, version, place)
    native, cross = place / "native", place / "cross"
    usr, triplet = root / "usr", machines.chosen.libraries
    options = ["-q", "--without-ensurepip", "--disable-test-modules"]
    parallel = ["make", "-s", f"-j{len(os.sched_getaffinity(0))}"]
    native.mkdir()
    images.run("../configure", *options, cwd=native)
    images.run(*parallel, cwd=native)
    (native / python).symlink_to("python")
    headers, objects = f"-I{usr}/include/{triplet}", f"-L{usr}/lib/{triplet}"
    environment = os.environ | {
        "PATH": f"{native}:{os.environ['PATH']}",  # up to 3.10, configure searches here for the native interpreter
        "CPPFLAGS": headers, "LDFLAGS": objects, "LIBFFI_CFLAGS": headers, "LIBFFI_LIBS": f"{objects} -lffi"}
    cross.mkdir()
    images.run("../configure", *options, f"--build={images.run('gcc', '-dumpmachine').strip()}", f"--host={triplet}",
               "--prefix=/usr", f"--with-build-python={native}/python", "PKG_CONFIG_LIBDIR=/none",
               # configure cannot run tests for another machine.
               "--disable-ipv6", "ac_cv_file__dev_ptmx=yes", "ac_cv_file__dev_ptc=no", cwd=cross, env=environment)
    images.run(*parallel, cwd=cross, env=environment)
    # Like make install, which would also compile the library three times.
    library, extensions = usr / "lib" / python, cross / (cross / "pybuilddir.txt").read_text()
    (usr / "bin").mkdir(exist_ok=True)
    shutil.copy(cross / "python", usr / "bin" / python)
    shutil.copytree(place / "Lib", library, ignore=shutil.ignore_patterns(*unneeded))
    (library / "lib-dynload").mkdir()
    for extension in extensions.glob("*.so"):
        shutil.copy(extension, library / "lib-dynload")


def fill(root):
    other_root.unpack_elsewhere(root, ("debian bookworm",), *libraries)
    for version in sources:
        with tempfile.TemporaryDirectory(prefix="source-", dir=images.cache) as place:
            build(version, pathlib.Path(place), root)
        print(f"built CPython {version}", flush=True)


def main():
    machines.choose("arm64")
    try:
        images.need(programs, "cross")
        images.need_plain_path("CPython")
        images.make_whole(other_root.path() / "elsewhere/made", fill)
    except images.Missing as why:
        sys.exit(str(why))


main()
