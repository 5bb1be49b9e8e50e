# SPDX-License-Identifier: Apache-2.0
"""QEMU machine that boots a given kernel with the host's root file system, runs one command and powers off. A kernel
without modules cannot mount the host's root: it has its own root in the initramfs, and communicates over serial
lines."""
import ctypes
import os
import pathlib
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

import machines
import other_root
import own_root
from images import Missing, root

here = pathlib.Path(__file__).resolve().parent

# Mitigations are off: only trusted code runs in the guest, and they would slow down the emulated CPU. The kernel panics
# on an oops.
kernel_arguments = "loglevel=5 panic=-1 oops=panic nokaslr mitigations=off nowatchdog random.trust_cpu=on rdinit=/init"
boot_seconds = 180  # on an idle host, booting takes 5 s
max_seconds = 3600  # for a boot and its command or cases

# In a machine without the host's root, these files are links to serial lines.
serial_lines = {"output": "/dev/ttyS1", "status": "/dev/ttyS2"}

trouble = re.compile(r"Kernel panic|Oops|BUG:|WARNING: CPU|general protection fault|Call Trace:|hung_task|rcu.*stall")


stopping = threading.Event()  # set to stop all machines


class Died(Exception):
    """The machine powered off or hung before its command exited."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def need_programs():
    for program in machines.chosen.qemu[0], *([] if machines.chosen.own_root else ["busybox"]):
        if not shutil.which(program):
            raise Missing(f"{program} is not installed: make test-kernels installs it")
    with open(busybox(), "rb") as file:
        if b"/ld-linux" in file.read(4096):
            raise Missing("busybox is not static: install busybox-static")


def busybox():
    return other_root.path() / "bin/busybox" if machines.chosen.own_root else pathlib.Path(shutil.which("busybox"))


def archive(files):
    """An initramfs (cpio, newc) of {name: (mode, data)}."""
    out = bytearray()

    def add(number, name, mode, data):
        name = os.fsencode(name)
        fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out.extend(b"070701" + "".join(f"{n:08x}" for n in fields).encode() + name + b"\0")
        out.extend(bytes(-len(out) % 4) + data)
        out.extend(bytes(-len(out) % 4))
    for number, (name, (mode, data)) in enumerate(files.items(), 1):
        add(number, name, mode, data)
    add(0, "TRAILER!!!", 0, b"")
    return bytes(out)


def initramfs(image, control_files):
    """Initramfs of the guest. `control_files`: contents of /run/guest, for machines that cannot mount the host's
    root."""
    files = {"init": (0o100755, (here / "init").read_bytes())}
    if image.has_drivers:
        files |= {name: (0o40755, b"") for name in ("bin", "modules")}
        files |= {f"modules/{path.name}": (0o100644, path.read_bytes()) for path in image.modules}
        files["checkout"] = 0o100644, os.fsencode(root)  # not a kernel argument, since the path may contain spaces
    else:
        files |= own_root.files() | {"run/guest": (0o40755, b"")}
        files |= {f"run/guest/{name}": (0o100755, data) for name, data in control_files.items()}
        files |= {f"run/guest/{name}": (0o120777, line.encode()) for name, line in serial_lines.items()}
    place = "bin" if stat.S_ISDIR(files["bin"][0]) else "usr/bin"
    return archive(files | {f"{place}/busybox": (0o100755, busybox().read_bytes())})


def command_line(image, share, by_instructions):
    machine = machines.chosen
    def folder(name, path, *options):
        path = str(path).replace(",", ",,")
        return ["-fsdev", ",".join(["local", f"id={name}", f"path={path}", "security_model=none", *options]),
                "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]
    arguments = [kernel_arguments, machine.kernel, f"console={machine.console}"]
    if image.has_drivers:
        channels = [*folder("host", other_root.path() if machine.own_root else "/", "readonly=on", "multidevs=remap"),
                    *folder("share", share), *folder("folder", root, "readonly=on", "multidevs=remap")]
    elif machine.own_root:
        raise Missing(f"Debian no longer has the modules of {image.release}, only its image")
    else:
        channels = [word for name in serial_lines for word in ("-serial", f"file:{share / name}")]
    # sleep=off: while the machine is idle, its clock jumps to the next timer instead of waiting.
    clock = ["-icount", "shift=0,sleep=off"] if by_instructions else []
    return [*machine.qemu, "-accel", "tcg,thread=single", *clock, "-smp", "2", "-m", "3G",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-kernel", image.kernel,
            "-initrd", share / "initramfs", "-append", " ".join(arguments), "-serial", f"file:{share / 'console'}", *channels]


class Guest:
    """One boot. on_output(text) is called with the command's output as it arrives."""

    def __init__(self, image, command, *, on_output, environment={}, by_instructions=False):
        self.image, self.command, self.on_output = image, command, on_output
        self.environment, self.by_instructions = environment, by_instructions
        self.console, self.boot_time = "", None

    def run(self):
        """Boots, and returns the command's exit status."""
        share = pathlib.Path(tempfile.mkdtemp(prefix="gpusnoop-guest-"))
        try:
            self.prepare(share)
            with open(share / "qemu", "w") as errors:
                process = subprocess.Popen(command_line(self.image, share, self.by_instructions), stdin=subprocess.DEVNULL,
                                           stdout=errors, stderr=errors, preexec_fn=die_with_parent)
            try:
                self.follow(process, share)
            finally:
                process.kill()
                process.wait()
                self.console = self.read(share / "qemu") + self.read(share / "console")
            status = self.read(share / "status").strip()
            if not status:
                raise Died("the machine powered off before the command exited")
            return int(status)
        finally:
            shutil.rmtree(share, ignore_errors=True)

    def prepare(self, share):
        variables = {"GUEST_FOLDER": str(root), **self.environment}
        exports = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in variables.items())
        control_files = {"session": (here / "session").read_bytes(), "busybox": busybox().read_bytes(),
                         "command": os.fsencode(self.command) + b"\n",
                         "environment": os.fsencode(exports)}
        for name, data in control_files.items():
            (share / name).write_bytes(data)
        (share / "busybox").chmod(0o755)
        (share / "initramfs").write_bytes(initramfs(self.image, control_files))

    def follow(self, process, share):
        start, reported_bytes = time.monotonic(), 0
        while True:
            ended = process.poll() is not None
            output = share / "output"
            if stopping.is_set():
                sys.exit(1)
            if not self.boot_time and (output.exists() if self.image.has_drivers else self.read(share / "status")):
                self.boot_time = time.monotonic() - start
            if output.exists():
                with open(output, "rb") as file:
                    file.seek(reported_bytes)
                    text = file.read()
                complete = text if ended else text[:text.rfind(b"\n") + 1]
                reported_bytes += len(complete)
                if complete:
                    self.on_output(complete.decode(errors="replace"))
            if ended:
                return
            spent = time.monotonic() - start
            if not self.boot_time and spent > boot_seconds:
                raise Died(f"did not boot within {boot_seconds} s")
            if spent > max_seconds:
                raise Died(f"did not finish within {max_seconds} s")
            time.sleep(0.05)

    @staticmethod
    def read(path):
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def trouble(self):
        """Warnings and errors in the kernel log."""
        return [line.strip() for line in self.console.splitlines() if trouble.search(line)]
