// SPDX-License-Identifier: Apache-2.0
// Scan of a file's code for the calls that register kernels. The runtime may be linked dynamically, statically, or
// statically and stripped. The file is untrusted: time and memory are bounded.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"
#include "code/elf_image.hpp"
#include "names/registrations.hpp"

#include <optional>
#include <string>

namespace gpusnoop {

// Empty if the file registers no kernels. Throws Error if it cannot be read.
Registrations scan_registrations(const Elf& elf);

// The name of a registration, read from the file. Empty if the code at its site does not register this stub, or if the
// name cannot be a kernel's: registrations from another process or the cache are checked against the file.
std::string registered_name(const ElfImage& image, const Registration& registration);

// True if the code at the site stores the handle of this stub in this variable.
bool keeps_handle(const ElfImage& image, const HandleVariable& handle);

} // namespace gpusnoop
