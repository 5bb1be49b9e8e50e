# SPDX-License-Identifier: Apache-2.0
"""Linux functions that Python 3.11 lacks: namespaces, subreapers, and the tree of descendants."""
import ctypes
import os
import platform
import signal
import time

libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS = 0x20000
CLONE_NEWPID = 0x20000000
MNT_DETACH = 2
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_BIND = 0x1000
SYS_bpf, SYS_pivot_root = {"x86_64": (321, 155), "aarch64": (280, 41)}[platform.machine()]
BPF_MAP_GET_FD_BY_ID = 14


def checked(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def map_fd(number):
    """Descriptor of a BPF map by its id."""
    attributes = (ctypes.c_uint32 * 3)(number, 0, 0)
    return checked(libc.syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, attributes, ctypes.sizeof(attributes)), "bpf")


def adopt_orphans():
    """Makes this process the parent of orphaned descendants, so that it can find and kill them."""
    checked(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def private_mounts():
    """Enters a new mount namespace: other processes do not see later mounts, and they disappear with this process."""
    checked(libc.unshare(CLONE_NEWNS), "unshare")
    checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount")


def new_pid_namespace():
    """The next child becomes process 1 of a new pid namespace. When that child exits, the kernel kills all other
    processes of the namespace."""
    checked(libc.unshare(CLONE_NEWPID), "unshare")


def die_with_parent():
    checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def change_root(folder):
    """Makes the mount `folder` the root, and detaches the old root."""
    os.chdir(folder)
    checked(libc.syscall(SYS_pivot_root, b".", b"."), "pivot_root")  # the old root is now mounted over the new one
    checked(libc.umount2(b".", MNT_DETACH), "umount2")
    os.chdir("/")


def same_addresses():
    """Disables address randomization from the next exec on."""
    checked(libc.personality(0x0040000), "personality")  # ADDR_NO_RANDOMIZE


def mount(source, target, kind=None, flags=0, options=None):
    encode = lambda text: None if text is None else os.fsencode(text)
    checked(libc.mount(encode(source), encode(target), encode(kind), flags, encode(options)),
            f"mounting {kind or source} on {target}")


def bind(source, target):
    mount(source, target, None, MS_BIND)


def enter_mounts(descriptor):
    """Enters the mount namespace of an open /proc/PID/ns/mnt."""
    checked(libc.setns(descriptor, CLONE_NEWNS), "setns")


def stat_fields(pid):
    """Fields of /proc/PID/stat, beginning with the state (field 3); empty if the process has exited."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def descendants(ancestor=None):
    ancestor = ancestor or os.getpid()
    parents = {int(name): int(fields[1]) for name in os.listdir("/proc") if name.isdigit()
               and (fields := stat_fields(name)) and fields[0] != "Z"}
    found, grew = {ancestor}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return found - {ancestor}


def kill_descendants():
    """Kills all descendants of this process, and returns their names."""
    names = []
    while left := descendants():
        for pid in left:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
            if words == [b""]:
                continue  # already killed and exiting: it has no command line any more
            names.append(f"{pid} ({b' '.join(words[:4]).decode(errors='replace')[:80]})")
        reap()
        time.sleep(0.01)
    reap()
    return names


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wait_for_exit(child, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    return False


def need_ignored_bits():
    from harness import Skip
    if platform.machine() != "aarch64":
        raise Skip("this processor does not ignore the top byte of addresses")


def need_tier(name):
    """Skips the case if the kernel's symbols show that it lacks this way of attaching."""
    from harness import Skip
    symbol = {"session": "bpf_session_is_return", "multi": "bpf_uprobe_multi_link_attach"}.get(name)
    with open("/proc/kallsyms") as file:
        if symbol and not any(line.split()[2] == symbol for line in file):
            raise Skip(f"this kernel has no {symbol}()")
