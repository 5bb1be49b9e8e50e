// SPDX-License-Identifier: Apache-2.0
// A kernel's name out of the driver's own object for it (CUfunction). Where in the object it is, no header says: it is
// learnt for each build of the driver from objects whose kernels are known, and believed once two kernels agree.
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

// A kernel's name out of HIP's own object for it (hipFunction_t). No header says where that is, and each ROCm has it
// elsewhere: it is read from the code of the library's own hipKernelNameRef(), and believed once two kernels agree.

// From a hipFunction_t to the characters of its name; nullopt where the library's code does not tell.
std::optional<Path> hip_name_path(const Elf& library);

class HipObjects {
public:
    struct Library {
        const Elf& file;
        const std::string& build_id;
    };

    // The object at `handle` is of the kernel of this name: HIP was asked for it. Where it says another one, no name of
    // this library's is believed any more.
    void learn(pid_t pid, const Library& library, uint64_t handle, std::string_view name);

    // The (mangled) name in the object at `handle`; nullopt where there is none, or no second one that is as it should
    // be: as long as the object says, and all of it printable.
    std::optional<std::string> name(pid_t pid, const Library& library, uint64_t handle);

    // Libraries whose objects are understood: changes when another one is.
    uint64_t understood() const;

private:
    struct Known {
        Path path;              // empty: it is not known
        std::set<size_t> names; // hashes of those found by it, up to as many as it takes
        bool trusted() const;
    };

    Known* known(const Library& library);

    std::map<std::string, Known> libraries_; // by build-id
};

} // namespace gpusnoop
