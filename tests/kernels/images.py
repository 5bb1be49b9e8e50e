# SPDX-License-Identifier: Apache-2.0
"""Debian's kernels: fetched from its archive with what a module needs to be built, unpacked, and kept."""
import fcntl
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
cache = pathlib.Path(os.environ.get("GPUSNOOP_CACHE") or
                     pathlib.Path(os.environ.get("BUILD", root / "build")).resolve() / "kernels")

# Cloud flavours are smaller, but have no 9p.
releases = {"6.1": r"6\.1\.0-\d+-amd64", "6.12": r"6\.12\.\d+\+deb12-amd64"}

# What the guest needs before it has a root; which modules these need is in them.
wanted = ("virtio_pci", "9pnet_virtio", "9p", "overlay")

# Goes up when what is kept of an image changes.
layout = 1


class Missing(Exception):
    """Why there is no such kernel here."""


class Image:
    def __init__(self, folder):
        self.folder = folder
        self.release = (folder / "release").read_text().strip()
        self.kernel = folder / "boot" / f"vmlinuz-{self.release}"
        self.modules = sorted((folder / "modules").iterdir())
        self.headers = folder / "usr/src" / f"linux-headers-{self.release}"


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise Missing(f"{' '.join(command[:3])}: {(done.stderr.strip() or done.stdout.strip())[-300:]}")
    return done.stdout


def by_version(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def depends(package):
    """Names of the packages that a package needs, the first of each choice."""
    field = re.search(r"^Depends: (.*)$", run("apt-cache", "show", "--no-all-versions", package), re.M)
    return [re.split(r"[ :(]", choice.split("|")[0].strip())[0] for choice in (field[1].split(",") if field else [])]


def available(series):
    """The newest release of a series of which everything can be had, and its packages."""
    names = run("apt-cache", "pkgnames", "linux-image-").split()
    found = [m[1] for name in names if (m := re.fullmatch(rf"linux-image-({releases[series]})", name))]
    for release in sorted(found, key=by_version, reverse=True):
        headers = f"linux-headers-{release}"
        packages = [f"linux-image-{release}", headers]
        try:
            packages += [name for name in depends(headers) if re.match(r"linux-(headers|kbuild)-", name)]
            run("apt-get", "download", "--print-uris", *packages)
        except Missing:
            continue
        return release, packages
    raise Missing(f"apt knows no Debian kernel {series} with its headers")


def module_files(folder):
    return {re.sub(r"\.ko.*", "", path.name).replace("-", "_"): path for path in folder.rglob("*.ko*")}


def contents(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def keep_modules(source, target):
    """The wanted modules and those they need, under names that sort in the order to load them in."""
    files, order = module_files(source), {}

    def add(name):
        if name in order or name not in files:  # part of the kernel
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


def download(series, debs):
    release, packages = available(series)
    run("apt-get", "-q", "download", *packages, cwd=debs)  # which checks what it got
    return release


def fetch(series, folder):
    if not shutil.which("apt-get"):
        raise Missing("no apt-get: kernels come as packages of Debian")
    debs = folder / "debs"
    debs.mkdir()
    try:
        release = download(series, debs)
    except Missing:
        run("apt-get", "-q", "update")  # its lists may be old, or empty
        release = download(series, debs)
    for deb in debs.iterdir():
        run("dpkg", "-x", str(deb), str(folder))
    shutil.rmtree(debs)
    keep_modules(folder / "lib/modules", folder / "modules")
    shutil.rmtree(folder / "lib")
    (folder / "release").write_text(release + "\n")


def image(series):
    """What is kept of a series, fetched if there is nothing. It has its name only once it is whole."""
    folder = cache / f"{series}.{layout}"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = pathlib.Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
            try:
                fetch(series, partial)
                partial.chmod(0o755)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return Image(folder)
