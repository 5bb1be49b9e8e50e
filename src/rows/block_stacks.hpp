// SPDX-License-Identifier: Apache-2.0
// Where threads that call have blocked outside of calls, by reason and stack.
#pragma once

#include "names/code_places.hpp"
#include "names/kernel_symbols.hpp"
#include "names/user_stacks.hpp"
#include "rows/block_totals.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpusnoop {

struct BlockKey {
    WhoKey who;
    uint32_t part = 0;
    int32_t stack = 0; // a number of the report's
    auto operator<=>(const BlockKey&) const = default;
};

struct BlockGroup {
    WhoSeen who;
    uint64_t ns = 0;
    uint64_t times = 0;
};

class BlockStacks {
public:
    BlockStacks(int counts_fd, const UserStacks::Kernel& kernel, WaitBudget* waits = nullptr) // see Reader
        : totals_(counts_fd), stacks_fd_(kernel.stacks), users_(kernel, {}, waits)
    {}
    BlockStacks(const BlockStacks&) = delete;

    // What has ended since the last call, of threads that have just been drained; then those that have ended are
    // forgotten.
    std::map<BlockKey, BlockGroup> drain(const std::vector<ThreadTime>& times, const CallView& view,
                                         Processes& processes);
    const Frames& frames(const BlockKey& key) const { return places_.frames(key.stack); }
    // By ids; negative: not known. The kernel's first: it is what the program's last call has led to.
    Frames frames(const ImageId& image, int32_t user, int32_t kernel);
    // Now and then: names are asked for, and come.
    void tick(const ThreadTimes& times);
    void forget(const std::vector<ImageId>& images);
    UserStacks& of_users() { return users_; }

private:
    BlockTotals<block_key, block_count> totals_;
    int stacks_fd_;
    UserStacks users_;
    CodePlaces places_{CodePlaces::By::stack,
                       {.frames = [this](const ImageId& image, int32_t user,
                                         uint64_t kernel) { return frames(image, user, static_cast<int32_t>(kernel)); },
                        .place = {}}};          // of the last drain()
    std::optional<KernelSymbols> kernel_names_; // once there is a stack
};

} // namespace gpusnoop
