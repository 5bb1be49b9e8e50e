// SPDX-License-Identifier: Apache-2.0
// What was launched before and after a gap, by name.
#pragma once

#include "bpf/shared/gap.h"
#include "names/kernel_names.hpp"
#include "names/name_options.hpp"
#include "names/naming.hpp"
#include "rows/launch_groups.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusnoop {

struct GapLaunch {
    gap_launch call{};
    KernelName kernel{}; // or host function; empty: not known

    // "kernel", "kernels of several devices", "graph", "host function"
    std::string_view what() const;
    // "vecadd(float*)", "[graph 0x...]", "kernel 0x... without a name"; how: as NameOptions has it.
    std::string text(std::string_view how) const;
};

struct GapLaunches {
    GapLaunch before, after;
};

// The names, and what has none yet.
class LaunchNames {
public:
    explicit LaunchNames(const NameOptions& options, WaitBudget* waits = nullptr) // see Reader
        : names_(options.cache_folder(), waits)
    {}

    void expect(pid_t pid) { names_.expect(pid); }
    // A record of the kernel side's, with its name behind it.
    void learn(const name_record& record, size_t size) { names_.learn(record, size); }
    // The descriptor of their map, as KernelNames takes it.
    void read_unsent_from(int map_fd) { names_.read_unsent_from(map_fd); }
    uint64_t lost_since_last() { return names_.lost_since_last(); }
    GapLaunches of(const gap_record& gap);
    // Once a second: whether to hold the probes that only teach names.
    bool tick();
    void forget(const ImageId& image);

private:
    GapLaunch named(const ImageId& image, const gap_launch& launch);

    KernelNames names_;
    UnnamedKernels unnamed_;
    NamingSchedule naming_;
};

} // namespace gpusnoop
