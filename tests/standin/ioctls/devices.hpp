// SPDX-License-Identifier: Apache-2.0
// The device nodes of a script, which are its own: a real driver never gets a call of ours.
#pragma once

#include <cstdint>
#include <string>

namespace ioctls {

// Where the stub of the driver is loaded, files are open and it takes the calls. Elsewhere they are open for their path
// only: ioctl enters the kernel with the device's file and fails there with EBADF.
bool have_driver();

// The file of a device, opened if it is not.
int device(const std::string& name);

// Each returns 0 or errno.
int open_device(const std::string& name); // once more; the file opened last is used
int close_device(const std::string& name);
int map_device(const std::string& name, uint64_t bytes);

void forget_devices(); // in a forked child: its parent's files stay open, and closing them is the parent's
void close_devices();

} // namespace ioctls
