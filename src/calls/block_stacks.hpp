// SPDX-License-Identifier: Apache-2.0
// Where threads that call have blocked outside of calls, by reason and stack.
#pragma once

#include "calls/block_totals.hpp"
#include "calls/user_stacks.hpp"
#include "names/kernel_symbols.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpusnoop {

struct BlockKey {
    WhoKey who;
    ImageId image; // whose addresses the stack has
    uint32_t part = 0;
    int32_t user = 0, kernel = 0; // ids of stacks; negative: not known
    auto operator<=>(const BlockKey&) const = default;
};

struct BlockGroup {
    WhoSeen who;
    uint64_t ns = 0;
    uint64_t times = 0;
};

class BlockStacks {
public:
    BlockStacks(int counts_fd, const UserStacks::Kernel& kernel)
        : totals_(counts_fd), stacks_fd_(kernel.stacks), users_(kernel)
    {}

    // What has ended since the last call, of threads that have just been drained; then those that have ended are
    // forgotten.
    std::map<BlockKey, BlockGroup> drain(const std::vector<ThreadTime>& times, const CallView& view,
                                         Processes& processes);
    // The kernel's first: it is what the program's last call has led to.
    Frames frames(const BlockKey& key);
    // Now and then: names are asked for, and come.
    void tick(const ThreadTimes& times);
    void forget(const std::vector<ImageId>& images);
    UserStacks& of_users() { return users_; }

private:
    BlockTotals<block_key, block_count> totals_;
    int stacks_fd_;
    UserStacks users_;
    std::optional<KernelSymbols> kernel_names_; // once there is a stack
};

} // namespace gpusnoop
