// SPDX-License-Identifier: Apache-2.0
// Which of the driver's GPU files (/dev/nvidiaN) a process holds open.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <sys/types.h>

namespace gpusnoop {

// Their minor numbers, whatever the files are called where the process lives: a container may have them by other names.
// nullopt: it is gone, or has too many files open to look at all. Never waits for a file system of the process's own.
// proc: a folder like /proc.
std::optional<std::set<unsigned>> open_gpu_files(pid_t pid, const std::string& proc = "/proc");
// The same of the driver's other files, by their major number, which begin with its name, too.
std::optional<std::set<unsigned>> open_nvidia_files(pid_t pid, unsigned major, const std::string& proc = "/proc");

} // namespace gpusnoop
