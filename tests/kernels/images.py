# SPDX-License-Identifier: Apache-2.0
"""Fetches Debian's kernels, and the packages for building modules, from its archives; unpacks and caches them."""
import contextlib
import fcntl
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import machines
import sources

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(root / "tests"))
from archive import Apt, Missing, mirror, run  # noqa: E402, F401

build = pathlib.Path(os.environ.get("BUILD", root / "build")).resolve()
cache = pathlib.Path(os.environ.get("GPUSNOOP_CACHE") or build / "kernels")

# Kernels that are tested by default. "newest" is the newest kernel in the archives: one of these, or an additional one.
listed = ("5.10", "6.1", "6.12", "6.16", "6.18", "6.19", "7.0", "7.1", "7.2", "7.3")
newest = "newest"

# Distributions and suites of the kernel packages, independent of the suites that the host installs packages from.
suites = ("debian bullseye", "debian-security bullseye-security", "debian bookworm", "debian-security bookworm-security",
          "debian bookworm-backports", "debian trixie", "debian trixie-backports")

# Excludes cloud flavours, which lack 9p, and bullseye-backports, which has the same kernels. Debian has arm64 kernels
# with 16 KiB pages (6.12-16k); sources.py builds other page sizes.
release_name = r"linux-(?:image|binary)-((\d+\.\d+)\.\d+(?:-\d+|\+deb\d+(?:\.\d+)?)-{}(-16k)?)"
kernel_argument = r"(\d+\.\d+|newest)(-16k|-64k)?"

# Modules that the guest needs before it can mount its root. Their dependencies are read from the modules.
wanted = ("virtio_pci", "9pnet_virtio", "9p", "overlay")

# Libraries that Debian's linux-kbuild programs may need in a newer version than the host's.
libraries = ("libc6", "libelf1t64", "zlib1g", "libzstd1")

# Increment if the contents of cached images change.
layout = 2

day = 86400


class Image:
    def __init__(self, folder):
        self.release = (folder / "release").read_text().strip()
        self.kernel = folder / "vmlinuz"
        self.modules = sorted((folder / "modules").iterdir())
        self.has_drivers = bool(self.modules) or (folder / "whole").exists()  # true: can mount the host's root
        self.headers = folder / "usr/src" / f"linux-headers-{self.release}"


def need(programs, install):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        raise Missing(f"{', '.join(missing)} not found: run scripts/install-deps {install}")


def need_plain_path(what):
    if re.search(r"[\s:]", str(cache)):
        raise Missing(f"{what} cannot be built in {cache}, since its path has a space or colon: choose another "
                      "folder by GPUSNOOP_CACHE")


def by_version(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def apt_folder(chosen):
    """Folder of apt's package lists for these suites."""
    return cache / machines.chosen.kept("apt" if chosen == suites else "-".join(["apt", *(suite.split()[1] for suite in chosen)]))


def apt_of(suites=suites):
    return Apt(apt_folder(suites), machines.chosen.architecture, suites)


def update(suites=suites):
    """Updates the package lists once a day, and after the archives' URLs changed. Archives that do not answer are
    ignored."""
    stamp = apt_folder(suites) / "updated"
    with contextlib.suppress(Missing):
        apt = apt_of(suites)
        if stamp.exists() and time.time() - stamp.stat().st_mtime < day and stamp.read_text() == apt.sources:
            return
        apt("apt-get", "-q", "update")
        stamp.write_text(apt.sources)


def packages():
    """Names of all kernel packages, and {series: its releases, newest first}."""
    update()
    names = set(apt_of()("apt-cache", "pkgnames", "linux-").split())
    found, pattern = {}, re.compile(release_name.format(machines.chosen.architecture))
    for release, series, pages in {match.groups("") for name in names if (match := pattern.fullmatch(name))}:
        found.setdefault(series + pages, []).append(release)
    if not found:
        raise Missing(f"apt finds no kernels at {mirror('debian')}")
    return names, {series: sorted(releases, key=by_version, reverse=True) for series, releases in found.items()}


def packages_of(release, names):
    """Returns for a release: (its modules are available, modules can be built for it, packages to unpack)."""
    version, series = release.partition(f"-{machines.chosen.architecture}")[0], ".".join(release.split(".")[:2])
    image, binary, modules = (f"linux-{kind}-{release}" for kind in ("image", "binary", "modules"))
    boot = [binary, modules] if binary in names else [image]  # since 6.19, linux-image is a metapackage of these
    whole = set(boot) <= names
    kbuild = next((name for name in (f"linux-kbuild-{version}", f"linux-kbuild-{series}") if name in names), "none")
    headers = [f"linux-headers-{release}", f"linux-headers-{version}-common", kbuild]
    buildable = set(headers) <= names and not machines.chosen.own_root  # arm64's build programs do not run on this host
    return whole, buildable, [name for name in boot if name in names] + headers * (whole and buildable)


def is_plain(series):
    return "-" not in series


def newest_series():
    """The newest series in the archives, or in the cache if the archives cannot be reached."""
    with locked():
        try:
            return max(filter(is_plain, packages()[1]), key=by_version)
        except Missing:
            begins = machines.chosen.kept("")
            kept = [name for folder in cache.glob(f"{begins}[0-9]*.*.{layout}")
                    if (name := folder.name.removeprefix(begins).rpartition(".")[0])]
            return max([*filter(is_plain, kept)] or listed, key=by_version)


def module_files(folder):
    return {re.sub(r"\.ko.*", "", path.name).replace("-", "_"): path for path in folder.rglob("*.ko*")}


def contents(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def keep_modules(source, target):
    """Copies the wanted modules and their dependencies, named so that they sort in load order."""
    files, order = module_files(source), {}

    def add(name):
        if name in order or name not in files:  # not in files: built into the kernel
            return
        data = contents(files[name])
        for need in re.search(rb"\0depends=([^\0]*)", data)[1].decode().split(","):
            add(need.replace("-", "_"))
        order[name] = data
    for name in wanted:
        add(name)
    target.mkdir()
    for number, (name, data) in enumerate(order.items()):
        (target / f"{number:02}-{name}.ko").write_bytes(data)


def unpack(folder, *names, suites=suites):
    apt_of(suites).unpack(folder, *names)


def make_runnable(folder):
    """Some of the programs that build modules come from a newer Debian. Wraps them in scripts that run them with that
    Debian's libraries."""
    programs = [path for path in (folder / "usr/lib").glob("linux-kbuild-*/**/*") if path.is_file() and os.access(path, os.X_OK)]
    needy = [path for path in programs if "not found" in subprocess.run(
        ["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout]
    if needy:
        unpack(folder / "newer", *libraries)
    for program in needy:
        program.rename(f"{program}.elf")
        place = "${0%/*}/" + os.path.relpath(folder / "newer/usr/lib/x86_64-linux-gnu", program.parent)
        program.write_text(f'#!/bin/sh\nexec "{place}/ld-linux-x86-64.so.2" --library-path "{place}" "$0.elf" "$@"\n')
        program.chmod(0o755)


def fetch(series, folder):
    names, releases = packages()
    # Prefers releases with modules, then with headers, then newer ones.
    release = max(releases.get(series, []), key=lambda one: (*packages_of(one, names)[:2], by_version(one)), default=None)
    if not release:
        raise Missing(f"Debian has no kernel {series} now")
    unpack(folder, *packages_of(release, names)[2])
    make_runnable(folder)
    keep_modules(folder, folder / "modules")
    next(folder.rglob("vmlinuz*")).rename(folder / "vmlinuz")
    for name in "boot", "lib/modules", "usr/lib/modules":
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "release").write_text(release + "\n")


@contextlib.contextmanager
def locked():
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_whole(folder, make):
    """Calls make(partial) if the folder does not exist, and renames partial to it once it is complete."""
    if folder.exists():
        return
    partial = pathlib.Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
    try:
        make(partial)
        partial.chmod(0o755)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def image(series):
    """The cached image of a series, fetched if necessary."""
    folder = cache / machines.chosen.kept(f"{series}.{layout}")
    make = sources.build if sources.is_built(series) else fetch
    with locked():
        make_whole(folder, lambda partial: make(series, partial))
    return Image(folder)
