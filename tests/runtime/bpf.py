# SPDX-License-Identifier: Apache-2.0
"""Information about loaded BPF programs, maps and links, read with bpf(2): a hundred times faster than running bpftool.
Field offsets come from linux/bpf.h; the kernel never changes them, it only appends fields."""
import collections
import ctypes
import errno
import os

import system

PROGRAM, MAP, LINK = "program", "map", "link"
next_number = {PROGRAM: 11, MAP: 12, LINK: 31}  # BPF_*_GET_NEXT_ID
by_number = {PROGRAM: 13, MAP: 14, LINK: 30}    # BPF_*_GET_FD_BY_ID
INFO_BY_FD = 15
ENABLE_STATS = 32
UPROBE_MULTI = 12  # BPF_LINK_TYPE_UPROBE_MULTI

Link = collections.namedtuple("Link", "program path pid")


def call(command, attributes):
    return system.checked(system.libc.syscall(system.SYS_bpf, command, attributes, ctypes.sizeof(attributes)), "bpf")


def ids(kind):
    """Ids of all loaded objects of a kind."""
    attributes = (ctypes.c_uint32 * 3)()
    while True:
        try:
            call(next_number[kind], attributes)
        except FileNotFoundError:
            return
        attributes[0] = attributes[1]  # the next call returns the id after this one
        yield attributes[1]


def info(kind, number, size, prepare=lambda buffer: None):
    """The kernel's struct bpf_*_info; None if the object no longer exists."""
    try:
        fd = call(by_number[kind], (ctypes.c_uint32 * 3)(number))
    except FileNotFoundError:
        return None
    try:
        buffer = ctypes.create_string_buffer(size)
        prepare(buffer)
        attributes = (ctypes.c_uint64 * 2)(fd | size << 32, ctypes.addressof(buffer))
        call(INFO_BY_FD, attributes)
        return buffer
    finally:
        os.close(fd)


def integer(buffer, at, size=4):
    return int.from_bytes(buffer.raw[at:at + size], "little")


def program_name(number):
    """Name of a program; the kernel keeps only the first 15 characters."""
    found = info(PROGRAM, number, 80)
    return found.raw[64:80].rstrip(b"\0").decode() if found else ""


def runs(number):
    """How often a program has run while enable_statistics() was active."""
    found = info(PROGRAM, number, 208)
    return integer(found, 200, 8) if found else 0


def enable_statistics():
    """Makes the kernel count runs of BPF programs until the returned descriptor is closed."""
    return call(ENABLE_STATS, (ctypes.c_uint32 * 1)(0))  # BPF_STATS_RUN_TIME


def uprobe_multi_link(number):
    """The link with this id as a Link; None if it is not a uprobe_multi link."""
    path = ctypes.create_string_buffer(4096)

    def ask_for_path(buffer):
        ctypes.c_uint64.from_buffer(buffer, 16).value = ctypes.addressof(path)
        ctypes.c_uint32.from_buffer(buffer, 48).value = len(path)
    try:
        found = info(LINK, number, 64, ask_for_path)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.E2BIG):  # errors of a kernel without uprobe_multi links
            raise
        return None
    if not found or integer(found, 0) != UPROBE_MULTI:
        return None
    return Link(integer(found, 8), path.value.decode(errors="replace"), integer(found, 60))
