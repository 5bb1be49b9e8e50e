// SPDX-License-Identifier: Apache-2.0
// What a row has called, has waited, and holds more, since it was opened.
#pragma once

#include "rows/call_sums.hpp"
#include "rows/holdings.hpp"
#include "tools/cudasync/waits.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace gpusnoop::cudatop {

class SinceOpened {
public:
    // Another row was opened, or none; of whose processes is known with the next snapshot.
    void restart();
    void follow(const std::set<ImageId>& images, const Holdings& holdings);

    // An interval.
    void add(std::span<const CallDelta> calls, std::span<const Waiting::Part> waits, double seconds);

    std::span<const CallDelta> calls() const { return calls_.rows(); }
    std::vector<Waiting::Part> waits() const; // those that a report fell into: their time, and whether they go on
    double seconds() const { return seconds_; }
    int64_t grown_bytes(const Holdings& holdings) const; // memory that is held now, less what was held then
    std::set<int32_t> stacks() const;                    // of all of these, as calls have them

private:
    std::set<ImageId> images_;
    CallSums calls_;
    ByCallKey<Waiting::Part> waits_;
    double seconds_ = 0;
    int64_t held_bytes_ = 0; // when it was opened
};

} // namespace gpusnoop::cudatop
