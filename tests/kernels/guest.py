# SPDX-License-Identifier: Apache-2.0
"""A machine under QEMU with a kernel of our choice and the host's root, which runs one command and ends."""
import ctypes
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from images import Missing, root

here = pathlib.Path(__file__).resolve().parent
qemu = "qemu-system-x86_64"

# Nothing runs there that could attack it, and an emulated CPU is slow enough. An oops must not go unnoticed.
kernel_arguments = ("console=ttyS0 loglevel=5 panic=-1 oops=panic nokaslr mitigations=off ibt=off tsc=reliable "
                    "clocksource=tsc nowatchdog random.trust_cpu=on rdinit=/init")
boot_seconds = 90  # five on an idle host

trouble = re.compile(r"Kernel panic|Oops|BUG:|WARNING: CPU|general protection fault|Call Trace:|hung_task|rcu.*stall")


class Died(Exception):
    """The machine ended, or hung, before its command did."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def need_programs():
    for program in qemu, "busybox":
        if not shutil.which(program):
            raise Missing(f"no {program}: make test-kernels installs it")
    with open(shutil.which("busybox"), "rb") as file:
        if b"/ld-linux" in file.read(4096):
            raise Missing("busybox is not static: busybox-static is needed")


def archive(files):
    """An initramfs (cpio, newc) of {name: (mode, data)}."""
    out = bytearray()

    def add(number, name, mode, data):
        fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out.extend(b"070701" + "".join(f"{n:08x}" for n in fields).encode() + name.encode() + b"\0")
        out.extend(bytes(-len(out) % 4) + data)
        out.extend(bytes(-len(out) % 4))
    for number, (name, (mode, data)) in enumerate(files.items(), 1):
        add(number, name, mode, data)
    add(0, "TRAILER!!!", 0, b"")
    return bytes(out)


def initramfs(image):
    folders = {name: (0o40755, b"") for name in ("bin", "modules")}
    programs = {"init": (0o100755, (here / "init").read_bytes()),
                "bin/busybox": (0o100755, pathlib.Path(shutil.which("busybox")).read_bytes())}
    return archive(folders | programs | {f"modules/{path.name}": (0o100644, path.read_bytes())
                                         for path in image.modules})


def command_line(image, share, memory):
    def folder(name, path, *options):
        return ["-fsdev", ",".join(["local", f"id={name}", f"path={path}", "security_model=none", *options]),
                "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]
    return [qemu, "-machine", "q35", "-accel", "tcg,thread=single", "-cpu", "Nehalem", "-smp", "2", "-m", memory,
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-kernel", image.kernel,
            "-initrd", share / "initramfs", "-append", kernel_arguments, "-serial", f"file:{share / 'console'}",
            *folder("host", "/", "readonly=on", "multidevs=remap"), *folder("share", share)]


class Guest:
    """One boot. What the command says goes to `say` as it comes."""

    def __init__(self, image, command, *, seconds, say=lambda text: None, folder=root, environment=None, memory="3G"):
        self.image, self.command, self.seconds, self.say = image, command, seconds, say
        self.folder, self.environment, self.memory = folder, environment or {}, memory
        self.console, self.boot_time = "", None

    def run(self):
        """The command's exit status."""
        share = pathlib.Path(tempfile.mkdtemp(prefix="gpusnoop-guest-"))
        try:
            self.prepare(share)
            with open(share / "qemu", "w") as errors:
                process = subprocess.Popen(command_line(self.image, share, self.memory), stdin=subprocess.DEVNULL,
                                           stdout=errors, stderr=errors, preexec_fn=die_with_parent)
            try:
                self.follow(process, share)
            finally:
                process.kill()
                process.wait()
                self.console = self.read(share / "qemu") + self.read(share / "console")
            if not (share / "status").exists():
                raise Died("the machine ended before the command did")
            return int(self.read(share / "status"))
        finally:
            shutil.rmtree(share, ignore_errors=True)

    def prepare(self, share):
        (share / "initramfs").write_bytes(initramfs(self.image))
        shutil.copy(shutil.which("busybox"), share / "busybox")
        shutil.copy(here / "session", share / "session")
        (share / "command").write_text(self.command + "\n")
        variables = {"GUEST_FOLDER": str(self.folder), **self.environment}
        (share / "environment").write_text("".join(f"export {k}={shlex.quote(v)}\n" for k, v in variables.items()))

    def follow(self, process, share):
        start, told = time.monotonic(), 0
        while True:
            ended = process.poll() is not None
            output = share / "output"
            if output.exists():
                self.boot_time = self.boot_time or time.monotonic() - start
                with open(output, "rb") as file:
                    file.seek(told)
                    text = file.read()
                whole = text if ended else text[:text.rfind(b"\n") + 1]
                told += len(whole)
                if whole:
                    self.say(whole.decode(errors="replace"))
            if ended:
                return
            spent = time.monotonic() - start
            if not self.boot_time and spent > boot_seconds:
                raise Died(f"no boot within {boot_seconds} s")
            if spent > self.seconds:
                raise Died(f"no end within {self.seconds} s")
            time.sleep(0.05)

    @staticmethod
    def read(path):
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def trouble(self):
        """What the kernel says of itself that it should not have to say."""
        return [line.strip() for line in self.console.splitlines() if trouble.search(line)]
