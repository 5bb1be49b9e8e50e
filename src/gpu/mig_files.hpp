// SPDX-License-Identifier: Apache-2.0
// Which GPU instances of MIG a process may use, by the driver's capability files that it holds open: it needs the
// instance's to begin, and keeps it open; or a container, by those that it has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

struct MigAccess {
    unsigned gpu_minor = 0; // N of /dev/nvidiaN
    uint16_t gpu_instance = 0;
    std::optional<uint16_t> compute_instance{}; // in it; nullopt: the file is the GPU instance's own
    auto operator<=>(const MigAccess&) const = default;
};

class MigFiles {
public:
    explicit MigFiles(const std::string& root = ""); // in whose proc the numbers stand

    // As narrowed() has them. Empty where it is gone, or may use none.
    std::set<MigAccess> of(pid_t pid, const std::string& proc = "/proc") const;
    std::optional<MigAccess> at(unsigned minor) const; // of /dev/nvidia-caps/nvidia-capN

private:
    std::optional<unsigned> major_;
    std::map<unsigned, MigAccess> by_minor_;
};

// Without GPU instances of whose compute instances some are there: whoever uses one has the files of both.
std::set<MigAccess> narrowed(std::set<MigAccess> all);

// /proc/driver/nvidia-caps/mig-minors: "gpu0/gi1/access 12", "gpu0/gi1/ci0/access 13" and others.
std::map<unsigned, MigAccess> parse_mig_minors(std::string_view text);

} // namespace gpusnoop
