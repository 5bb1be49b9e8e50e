// SPDX-License-Identifier: Apache-2.0
// Kernel names read from the driver's own objects (CUfunction). Their layout is undocumented: the name's offset is
// learned, per driver build, from kernels whose names are known, and trusted once two kernels agree.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"

#include <array>
#include <cstddef>
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
    // The driver has returned `handle` for the kernel with this (mangled) name.
    void learn(pid_t pid, const std::string& driver, uint64_t handle, std::string_view name);

    // True if the process has a kernel of this name: such a name found in an object confirms its offset, too.
    using IsKernel = std::function<bool(const std::string& name)>;

    // The (mangled) name in the object at `handle`; nullopt if the offset is unknown or the name there is no kernel's.
    std::optional<std::string> name(pid_t pid, const std::string& driver, uint64_t handle, const IsKernel& is_kernel);

    // Trusted offsets, over all driver builds. When it grows, a handle without a name may have one.
    uint64_t offsets_known() const;

private:
    static constexpr size_t words = 16; // of the object that are searched
    using Object = std::array<uint64_t, words>;

    struct Offset {
        std::set<size_t> names; // hashes of the names found there, at most names_needed
        bool trusted() const;
    };

    static std::optional<Object> read(pid_t pid, uint64_t handle);

    std::map<std::string, std::array<Offset, words>> drivers_; // by build-id
};

// Kernel names read from HIP's own objects (hipFunction_t). Their layout is undocumented and differs between ROCm
// versions: it is read from the machine code of hipKernelNameRef(), and trusted once two kernels agree.

// The path from a hipFunction_t to the characters of its name; nullopt if the library's code does not show it.
std::optional<Path> hip_name_path(const Elf& library);

class HipObjects {
public:
    struct Library {
        const Elf& file;
        const std::string& build_id;
    };

    // HIP has returned `handle` for the kernel with this name. If the object contains another name, no name from this
    // library is trusted any more.
    void learn(pid_t pid, const Library& library, uint64_t handle, std::string_view name);

    // The (mangled) name in the object at `handle`. It must be printable, and match the length in the object. nullopt
    // if there is none, or while the path is not trusted.
    std::optional<std::string> name(pid_t pid, const Library& library, uint64_t handle);

    // Libraries whose paths are trusted. When it grows, a handle without a name may have one.
    uint64_t trusted_libraries() const;

private:
    struct Known {
        Path path;              // empty: unknown
        std::set<size_t> names; // hashes of the names found by it, at most names_needed
        bool trusted() const;
    };

    Known* known(const Library& library);

    std::map<std::string, Known> libraries_; // by build-id
};

} // namespace gpusnoop
