// SPDX-License-Identifier: Apache-2.0
// Kernel names read from the driver's own objects (CUfunction). Their layout is undocumented, so the offset of the name
// is learned for each driver build from kernels whose names are known. The offset is trusted once the names of two
// kernels were found there.
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

    // Returns true if the process has a kernel with this name. name() uses it to check the text at an offset. If the
    // text is a kernel's name, the offset is one name closer to being trusted.
    using IsKernel = std::function<bool(const std::string& name)>;

    // Returns the (mangled) name in the object at `handle`. nullopt if the offset is not trusted yet, or if the text
    // there is not the name of a kernel.
    std::optional<std::string> name(pid_t pid, const std::string& driver, uint64_t handle, const IsKernel& is_kernel);

    // Returns the number of trusted name offsets, summed over all driver builds. After it has grown, a call of name()
    // that returned nullopt before may succeed.
    uint64_t offsets_known() const;

private:
    static constexpr size_t words = 16; // number of words of an object that are searched for the name
    using Object = std::array<uint64_t, words>;

    struct Offset {
        std::set<size_t> names; // hashes of up to names_needed names found at the offset
        bool trusted() const;
    };

    static std::optional<Object> read(pid_t pid, uint64_t handle);

    std::map<std::string, std::array<Offset, words>> drivers_; // by build-id
};

// Kernel names read from HIP's own objects (hipFunction_t). Their layout is undocumented and differs between ROCm
// versions, so the path to the name is derived from the machine code of hipKernelNameRef(). The path is trusted once it
// has led to the names of two kernels.

// Returns the path from a hipFunction_t to the characters of its name. nullopt if it cannot be derived from the
// library's code.
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

    // Returns the (mangled) name in the object at `handle`. nullopt if the path that hip_name_path() derived from this
    // library is not trusted. Also nullopt if the text at the end of the path is not printable, or if its length
    // differs from the length that is stored in the object.
    std::optional<std::string> name(pid_t pid, const Library& library, uint64_t handle);

    // Returns the number of libraries for which the path to the name (hip_name_path()) is trusted. When it has grown, a
    // name() that failed before may succeed.
    uint64_t trusted_libraries() const;

private:
    struct Known {
        Path path;              // empty if unknown
        std::set<size_t> names; // hashes of up to names_needed names found by the path
        bool trusted() const;
    };

    Known* known(const Library& library);

    std::map<std::string, Known> libraries_; // by build-id
};

} // namespace gpusnoop
