// SPDX-License-Identifier: Apache-2.0
// Kernel names read from the driver's own objects (CUfunction). The layout of the objects is undocumented, so the
// name's offset is learned for each driver build from kernels whose names are known. It is trusted once two kernels
// agree.
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
    // To be called when the driver has returned `handle` for the kernel with this (mangled) name.
    void learn(pid_t pid, const std::string& driver, uint64_t handle, std::string_view name);

    // True if the process has a kernel with this name. Finding such a name in an object confirms the
    // name's offset, too.
    using IsKernel = std::function<bool(const std::string& name)>;

    // The (mangled) name in the object at `handle`. nullopt if the offset is unknown, or if there is no kernel's name
    // at the offset.
    std::optional<std::string> name(pid_t pid, const std::string& driver, uint64_t handle, const IsKernel& is_kernel);

    // The number of trusted offsets, for all driver builds. When it grows, handles that had no name may have one.
    uint64_t offsets_known() const;

private:
    static constexpr size_t words = 16; // words of an object that are searched for the name
    using Object = std::array<uint64_t, words>;

    struct Offset {
        std::set<size_t> names; // hashes of the names found at the offset, at most names_needed
        bool trusted() const;
    };

    static std::optional<Object> read(pid_t pid, uint64_t handle);

    std::map<std::string, std::array<Offset, words>> drivers_; // by build-id
};

// Kernel names read from HIP's own objects (hipFunction_t). The layout of the objects is undocumented and differs
// between ROCm versions, so it is derived from the machine code of hipKernelNameRef(). It is trusted once two kernels
// agree.

// The path from a hipFunction_t to the characters of its name; nullopt if the library's code does not show it.
std::optional<Path> hip_name_path(const Elf& library);

class HipObjects {
public:
    struct Library {
        const Elf& file;
        const std::string& build_id;
    };

    // To be called when HIP has returned `handle` for the kernel with this name. If the object contains another name,
    // names from this library are not trusted any more.
    void learn(pid_t pid, const Library& library, uint64_t handle, std::string_view name);

    // The (mangled) name in the object at `handle`. nullopt while the path is not trusted, or if the text that the path
    // leads to is not printable or does not have the length stored in the object.
    std::optional<std::string> name(pid_t pid, const Library& library, uint64_t handle);

    // The number of libraries whose paths are trusted. When it grows, handles that had no name may have one.
    uint64_t trusted_libraries() const;

private:
    struct Known {
        Path path;              // empty: unknown
        std::set<size_t> names; // hashes of the names that the path has led to, at most names_needed
        bool trusted() const;
    };

    Known* known(const Library& library);

    std::map<std::string, Known> libraries_; // by build-id
};

} // namespace gpusnoop
