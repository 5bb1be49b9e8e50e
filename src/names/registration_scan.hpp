// SPDX-License-Identifier: Apache-2.0
// Finds the calls that register kernels in a file's code, whether it is linked with the runtime dynamically,
// statically, or statically and stripped. The file may be anything: time and memory are bounded for any.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"
#include "code/elf_image.hpp"
#include "names/registrations.hpp"

#include <optional>
#include <string>

namespace gpusnoop {

// Empty where the file registers no kernels. Throws Error where it cannot be read.
Registrations scan_registrations(const Elf& elf);

// The name of a registration, read from the file; empty where the code at its site does not register this stub, or
// where the name is none of a kernel. So a table from elsewhere is believed only where the file itself says the same.
std::string registered_name(const ElfImage& image, const Registration& registration);

// Whether the code there gets the handle of this stub for this variable.
bool keeps_handle(const ElfImage& image, const HandleVariable& handle);

} // namespace gpusnoop
