# SPDX-License-Identifier: Apache-2.0
"""The machines that QEMU emulates: the host's own, which has the host's root, and others, which have one of packages."""
import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str
    architecture: str  # as Debian calls it, and its kernels
    libraries: str     # the folder of its libraries
    qemu: tuple        # the emulator, and what it emulates
    console: str
    kernel: str = ""   # further arguments
    own_root: bool = False

    @property
    def build(self):
        """Where make puts what runs there, under the build folder."""
        return pathlib.Path(self.libraries if self.own_root else "")

    def kept(self, name):
        """What is kept of it has a name of its own."""
        return f"{self.name}-{name}" if self.own_root else name


x86_64 = Machine("x86-64", "amd64", "x86_64-linux-gnu",
                 ("qemu-system-x86_64", "-machine", "q35", "-cpu", "Nehalem"), "ttyS0",
                 "ibt=off tsc=reliable clocksource=tsc")
# With the algorithm of pointer authentication that the processor describes, all would take twice as long.
arm64 = Machine("arm64", "arm64", "aarch64-linux-gnu",
                ("qemu-system-aarch64", "-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"), "ttyAMA0",
                own_root=True)

known = {machine.name: machine for machine in (x86_64, arm64)}
chosen = x86_64


def choose(name):
    global chosen
    chosen = known[name]
