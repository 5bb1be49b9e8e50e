# SPDX-License-Identifier: Apache-2.0
"""Fake machine with AMD GPUs: a folder with the files that amdgpu and KFD of Linux 6.12 create in /sys/class. The
folder is mounted over /sys/class in the tool's own mount namespace. unit/gpu/amd_host.hpp fakes more files."""
import os

import harness
import system

mib = 1 << 20


class AmdMachine:
    def __init__(self, gpus=1):
        self.folder = harness.here / "class"
        for number in range(gpus):
            self.add(number)
        (self.folder / "kfd/kfd/proc").mkdir(parents=True)
        self.write("kfd/kfd/topology/nodes/0/gpu_id", 0)

    def add(self, number):
        pci = f"0000:{number + 3:02x}:00.0"
        device = self.folder / "pci" / pci
        device.mkdir(parents=True)
        (self.folder / "drivers/amdgpu").mkdir(parents=True, exist_ok=True)
        os.symlink("../../drivers/amdgpu", device / "driver")
        (self.folder / f"drm/card{number}").mkdir(parents=True)
        os.symlink(f"../../pci/{pci}", self.folder / f"drm/card{number}/device")
        self.write(f"kfd/kfd/topology/nodes/{number + 1}/gpu_id", self.kfd_id(number))
        self.write(f"kfd/kfd/topology/nodes/{number + 1}/properties",
                   f"simd_count 400\nsimd_per_cu 4\nlocation_id {(number + 3) << 8}\ndomain 0\nunique_id {number + 0x1000}\n"
                   "gfx_target_version 90402")

    @staticmethod
    def kfd_id(gpu):
        return 41000 + gpu

    def write(self, path, value):
        """Replaces the file atomically, since the kernel's files never appear half written."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".new")
        new.write_text(f"{value}\n")
        os.rename(new, path)

    def device(self, gpu, **files):
        for name, value in files.items():
            self.write(f"pci/0000:{gpu + 3:02x}:00.0/{name}", value)

    def process(self, pid, gpu, *, vram=0, sdma_us=None, units=None):
        folder, kfd_id = f"kfd/kfd/proc/{pid}", self.kfd_id(gpu)
        self.write(f"{folder}/queues/0/gpuid", kfd_id)
        self.write(f"{folder}/vram_{kfd_id}", vram)
        if sdma_us is not None:
            self.write(f"{folder}/sdma_{kfd_id}", sdma_us)
        if units is not None:
            self.write(f"{folder}/stats_{kfd_id}/cu_occupancy", units)

    def enter(self):
        """Preexec function for a tool: mounts the fake /sys/class."""
        system.private_mounts()
        system.mount(self.folder, "/sys/class", None, system.MS_BIND)
