// SPDX-License-Identifier: Apache-2.0
// Device nodes of a script. They are temporary, and no real driver is ever called.
#pragma once

#include <cstdint>
#include <string>

namespace ioctls {

// Returns true if the stub driver is loaded: files are opened for reading and writing, and it serves the calls.
// Otherwise they are opened with O_PATH: ioctl enters the kernel with the device's file and fails there with EBADF.
bool have_driver();

// The descriptor of a device, which is opened first if necessary.
int device(const std::string& name);

// Each returns 0 or errno.
int open_device(const std::string& name); // may be called again: the descriptor opened last is used
int close_device(const std::string& name);
int map_device(const std::string& name, uint64_t bytes);

void forget_devices(); // in a forked child: closes its copies; the parent's files stay open
void close_devices();

} // namespace ioctls
