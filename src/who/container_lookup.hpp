// SPDX-License-Identifier: Apache-2.0
// Containers::find(), by a helper: records of containers are in parts the word of those who run them, they may be in a
// user's home, and the disk they are on may hang.
#pragma once

#include "reader/answerer.hpp"
#include "who/containers.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace gpusnoop {

class ContainerLookup {
public:
    explicit ContainerLookup(const std::string& host_root, WaitBudget* waits = nullptr); // see Answerer

    // nullopt where there is no answer yet: ask again.
    std::optional<ContainerNames> find(const CgroupOwner& owner);

private:
    using Key = std::pair<std::string, std::string>; // container and pod

    bool take(const Message& message);

    std::map<Key, ContainerNames> answers_; // that nobody has taken yet
    Answerer helper_;
};

} // namespace gpusnoop
