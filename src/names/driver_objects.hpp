// SPDX-License-Identifier: Apache-2.0
// A kernel's name out of the driver's own object for it (CUfunction). Where in the object it is, no header says: it is
// learnt for each build of the driver from objects whose kernels are known, and believed once two kernels agree.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

class DriverObjects {
public:
    // The object at `handle` is of the kernel of this (mangled) name: the driver was asked for it.
    void learn(pid_t pid, const std::string& driver, uint64_t handle, std::string_view name);

    // Whether a name is that of a kernel of the process. So one may be learnt from, too.
    using IsKernel = std::function<bool(const std::string& name)>;

    // The (mangled) name in the object at `handle`; nullopt where it is not known where to look, or where there is no
    // such name.
    std::optional<std::string> name(pid_t pid, const std::string& driver, uint64_t handle, const IsKernel& is_kernel);

    // In all builds of the driver: changes when another one is.
    uint64_t offsets_known() const;

private:
    static constexpr size_t words = 16; // of the object that are looked at
    using Object = std::array<uint64_t, words>;

    struct Offset {
        std::set<size_t> names; // hashes of names that have been found there, up to as many as it takes
        bool trusted() const;
    };

    static std::optional<Object> read(pid_t pid, uint64_t handle);

    std::map<std::string, std::array<Offset, words>> drivers_; // by build-id
};

} // namespace gpusnoop
