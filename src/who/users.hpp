// SPDX-License-Identifier: Apache-2.0
// Whose a process is: the name of its effective user, as the host's own list of users has it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gpusnoop {

class Users {
public:
    explicit Users(const std::string& host_root);

    // The name, or the number where the list has none (a directory's, a container's own); nullopt: the process is gone.
    std::optional<std::string> of(pid_t pid) const;

private:
    std::map<uint32_t, std::string> names_; // by uid
};

} // namespace gpusnoop
