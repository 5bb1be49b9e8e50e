// SPDX-License-Identifier: Apache-2.0
// Device nodes of a script. They are temporary, and no real driver is ever called.
#pragma once

#include <cstdint>
#include <string>

namespace ioctls {

// Returns true if the stub driver is loaded. If it is, device files are opened for reading and writing, and the stub
// handles the calls. If not, the files are opened with O_PATH, and the kernel fails each ioctl with EBADF.
bool have_driver();

// Returns the descriptor of a device, and opens the device first if necessary.
int device(const std::string& name);

// These functions return 0 or an errno value.
int open_device(const std::string& name); // may be called repeatedly; later calls use the last descriptor
int close_device(const std::string& name);
int map_device(const std::string& name, uint64_t bytes);

void forget_devices(); // in a forked child: closes its copies of the descriptors; the parent's stay open
void close_devices();

} // namespace ioctls
