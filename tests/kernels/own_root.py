# SPDX-License-Identifier: Apache-2.0
"""Root in an initramfs, for kernels that cannot mount the host's root: copies of the files that the cases need."""
import os
import pathlib
import re
import shutil
import subprocess

from images import root

build = pathlib.Path(os.environ.get("BUILD", root / "build")).resolve()
path_there = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
applets = ("sh", "setsid", "mkdir", "cat", "ls", "grep", "ps", "mount", "chroot", "dmesg", "sleep", "env")
unused = shutil.ignore_patterns("__pycache__", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data",
                                "dist-packages", "site-packages", "config-*", "turtledemo", "unittest", "distutils", "obj",
                                "_tkinter*", "_sqlite3*", "_ssl*", "_test*", "*.pyc")


def tree(folder):
    """All files below a folder, without files that no case needs."""
    for place, folders, files in os.walk(folder):
        skipped = unused(place, folders + files)
        folders[:] = [name for name in folders if name not in skipped]
        yield from (pathlib.Path(place, name) for name in files if name not in skipped)
        yield from (path for name in folders if (path := pathlib.Path(place, name)).is_symlink())


def libraries(programs):
    """Shared libraries of these files."""
    out = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    return {pathlib.Path(path) for path in re.findall(r"(?:=> |^\s+)(/.+) \(0x", out, re.M)}


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def files():
    """{name: (mode, data)}."""
    tools = re.search(r"^TOOLS *:= (.*)$", (root / "Makefile").read_text(), re.M)[1].split()
    python = shutil.which("python3", path=path_there)
    modules = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"], capture_output=True,
                             text=True, check=True).stdout.strip()
    bpftool = os.environ.get("BPFTOOL") or shutil.which("bpftool", path=path_there)
    wanted = {path for folder in (root / "tests", build / "standin", modules) for path in tree(folder)}
    wanted |= {build / folder / tool for folder in ("", "static") for tool in tools}
    wanted |= {root / "Makefile", root / "src/attach/probe_table.cpp"}  # cases read them
    wanted |= {pathlib.Path(path) for path in (python, os.path.realpath(python), bpftool) if path}
    wanted = {path for path in wanted if path.exists()}
    wanted |= libraries([path for path in wanted if is_elf(path)])
    out = {}

    def add(path, mode, data):
        for folder in reversed(path.parents[:-1]):
            out.setdefault(str(folder)[1:], (0o40755, b""))
        out[str(path)[1:]] = mode, data
    for name in "bin", "sbin", "lib", "lib64":
        if (path := pathlib.Path("/", name)).is_symlink():
            out[name] = 0o120777, os.fsencode(os.readlink(path))
    for path in sorted(wanted):
        place = path.parent.resolve() / path.name  # /lib may be a link
        if path.is_symlink():
            add(place, 0o120777, os.fsencode(os.readlink(path)))
            place = path.resolve()
        add(place, 0o100755 if os.access(path, os.X_OK) else 0o100644, path.read_bytes())
    for applet in applets:
        add(pathlib.Path("/bin").resolve() / applet, 0o120777, b"busybox")
    for folder in "tmp", "run", "var/tmp", "root", "mnt", "proc", "sys", "etc":
        out.setdefault(folder, (0o40755, b""))
    return out
