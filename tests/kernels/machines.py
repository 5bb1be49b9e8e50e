# SPDX-License-Identifier: Apache-2.0
"""Machines that QEMU emulates: x86-64, which uses the host's root, and arm64, whose root consists of Debian
packages."""
import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str
    architecture: str  # Debian's name
    libraries: str     # Debian's multiarch triplet
    qemu: tuple        # emulator, machine and CPU
    console: str
    kernel: str = ""   # further kernel arguments
    own_root: bool = False

    @property
    def build(self):
        """Folder below the build folder where make puts its programs."""
        return pathlib.Path(self.libraries if self.own_root else "")

    def kept(self, name):
        """Name of a cache folder of this machine."""
        return f"{self.name}-{name}" if self.own_root else name


x86_64 = Machine("x86-64", "amd64", "x86_64-linux-gnu",
                 ("qemu-system-x86_64", "-machine", "q35", "-cpu", "Nehalem"), "ttyS0",
                 "ibt=off tsc=reliable clocksource=tsc")
# pauth-impdef: the architected algorithm of pointer authentication would double all run times.
arm64 = Machine("arm64", "arm64", "aarch64-linux-gnu",
                ("qemu-system-aarch64", "-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"), "ttyAMA0",
                own_root=True)

known = {machine.name: machine for machine in (x86_64, arm64)}
chosen = x86_64


def choose(name):
    global chosen
    chosen = known[name]
