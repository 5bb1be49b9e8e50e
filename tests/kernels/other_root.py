# SPDX-License-Identifier: Apache-2.0
"""Root for machines of another architecture: Debian packages, unpacked but not installed."""
import os
import shutil

import images
import machines
import own_root

suite = "bookworm"
packages = ("libc6", "libgcc-s1", "libstdc++6", "libelf1", "libdw1", "zlib1g", "liblzma5", "libbz2-1.0", "libzstd1", "libfmt9",
            "libncursesw6", "libtinfo6", "libexpat1", "libffi8", "libssl3", "libcap2", "python3.11-minimal", "libpython3.11-minimal",
            "libpython3.11-stdlib", "busybox-static", "binutils", "binutils-common", "binutils-aarch64-linux-gnu",
            "libbinutils", "libctf0", "libjansson4")
newer = ("libbpf1", "bpftool")  # from backports, as in the cross build

# Nested roots for Python interpreters that Debian 12 lacks: {name: (suites, interpreters, libraries whose package names
# differ between suites)}. The "older" root also uses bookworm, because tools built for Debian 12 need its C library.
elsewhere = {"older": (("debian bullseye", "debian bookworm"), ("3.9",), ("libffi7", "libssl1.1")),
             "newer": (("debian testing",), ("3.13", "3.14", "3.15"), ("libffi8", "libssl3t64"))}
packages_elsewhere = "libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libzstd1", "libbz2-1.0", "liblzma5"
packages_of_python = "python{}-minimal", "libpython{}-minimal", "libpython{}-stdlib"

layout = 5


def merge(folder):
    """Moves /bin, /sbin and /lib below /usr, since up to Debian 12 some packages install there and some in /usr."""
    for name in "bin", "sbin", "lib":
        if (folder / name).is_dir():
            shutil.copytree(folder / name, folder / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(folder / name)
        (folder / name).symlink_to(f"usr/{name}")


def unpack_elsewhere(root, suites, *others):
    images.update(suites)
    images.unpack(root, *packages_elsewhere, *others, suites=suites)
    merge(root)


def fetch(folder):
    images.update()
    images.unpack(folder, *(f"{name}/{suite}" for name in packages), *(f"{name}/{suite}-backports" for name in newer))
    merge(folder)
    for name, (suites, interpreters, libraries) in elsewhere.items():
        root = folder / "elsewhere" / name
        root.mkdir(parents=True)
        unpack_elsewhere(root, suites, *libraries,
                         *(package.format(version) for version in interpreters for package in packages_of_python))
    (folder / "usr/bin/python3").symlink_to("python3.11")
    if not (folder / "usr/bin/bpftool").exists():
        (folder / "usr/bin/bpftool").symlink_to("../sbin/bpftool")
    for applet in own_root.applets:
        if not (folder / "usr/bin" / applet).exists():
            (folder / "usr/bin" / applet).symlink_to("busybox")
    for name in "dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "var/log", "var/tmp":
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    (folder / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")


def path():
    """The root, fetched if necessary. Has a folder at the repository's path, as a mount point."""
    folder = images.cache / machines.chosen.kept(f"root.{layout}")
    with images.locked():
        images.make_whole(folder, fetch)
        os.makedirs(f"{folder}{images.root}", exist_ok=True)
    return folder
