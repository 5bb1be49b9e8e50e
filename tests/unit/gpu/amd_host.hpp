// SPDX-License-Identifier: Apache-2.0
// A fake machine with two AMD GPUs. Its /sys and /proc are in a temporary folder, with files as amdgpu and KFD of Linux
// 6.12 create them (amdgpu_pm.c, kfd_topology.c, kfd_process.c, Documentation/gpu/drm-usage-stats.rst).
#pragma once

#include "tests/unit/base/folder.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace gpusnoop::amd_host {

constexpr const char* pci_0 = "0000:03:00.0";
constexpr const char* pci_1 = "0001:83:00.1";

struct AmdHost : Folder {
    AmdHost()
    {
        card("card1", pci_1);
        card("card0", pci_0);
        link("sys/class/drm/card2/device", "../../../devices/0000:00:02.0");
        link("sys/devices/0000:00:02.0/driver", "../../bus/pci/drivers/i915");
        file("sys/class/drm/card0-DP-1/status", "connected\n");
        file("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
        node(1, 41000, 0, 0x0300, 90402, 304, 4);
        node(2, 42000, 1, 0x8301, 110003, 192, 2);
        file("sys/class/kfd/kfd/proc/README", "not a process\n");
    }

    // Writes a file of a device.
    void device(const std::string& pci, const std::string& name, const std::string& text) const
    {
        file("sys/devices/" + pci + "/" + name, text);
    }
    // Writes KFD's file of a process.
    void kfd(unsigned pid, const std::string& name, const std::string& value) const
    {
        file(fmt::format("sys/class/kfd/kfd/proc/{}/{}", pid, name), value);
    }
    // Adds an open render node to a process. `text` is the contents of its fdinfo file.
    void descriptor(unsigned pid, int fd, const std::string& text,
                    const std::string& target = "/dev/dri/renderD128") const
    {
        const std::string name = fmt::format("proc/{}/fd/{}", pid, fd);
        if (!std::filesystem::is_symlink(file(name)))
            link(name, target);
        file(fmt::format("proc/{}/fdinfo/{}", pid, fd), "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t517\n" + text);
    }

private:
    void card(const std::string& name, const std::string& pci) const
    {
        link("sys/class/drm/" + name + "/device", "../../../devices/" + pci);
        link("sys/devices/" + pci + "/driver", "../../bus/pci/drivers/amdgpu");
        device(pci, "device", "0x74a1\n");
        device(pci, "power/runtime_status", "active\n");
    }
    void node(int number, unsigned id, unsigned domain, unsigned location, unsigned target, unsigned simds,
              unsigned in_unit) const
    {
        const std::string folder = fmt::format("sys/class/kfd/kfd/topology/nodes/{}/", number);
        file(folder + "gpu_id", fmt::format("{}\n", id));
        file(folder + "properties",
             fmt::format("cpu_cores_count 0\nsimd_count {}\nsimd_per_cu {}\nlocation_id {}\ndomain {}\n"
                         "drm_render_minor {}\nunique_id {}\ngfx_target_version {}\n",
                         simds, in_unit, location, domain, 127 + number, 0x1b2c00000000ULL + id, target));
    }
};

} // namespace gpusnoop::amd_host
