// SPDX-License-Identifier: Apache-2.0
// Scanner of a file's code for the calls that register kernels. The runtime may be linked dynamically or statically,
// and the file may be stripped. The file is untrusted, so time and memory are bounded.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"
#include "code/elf_image.hpp"
#include "names/registrations.hpp"

#include <optional>
#include <string>

namespace gpusnoop {

// Returns an empty result if the file registers no kernels. Throws Error if the file cannot be read.
Registrations scan_registrations(const Elf& elf);

// Reads the kernel name of a registration from the file. Registrations come from a helper process or the cache, so they
// are checked: returns an empty string if the call at registration.site does not register this stub, or if the text is
// not a valid kernel name.
std::string registered_name(const ElfImage& image, const Registration& registration);

// True if the call at handle.site stores the handle of this stub in this variable.
bool keeps_handle(const ElfImage& image, const HandleVariable& handle);

} // namespace gpusnoop
