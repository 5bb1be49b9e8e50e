// SPDX-License-Identifier: Apache-2.0
// Counts of this process's calls and records, as reported by CUPTI. Counting calls takes no lock, except for launches.
#pragma once

#include "cupti.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

namespace witness {

struct Tally {
    std::atomic<uint64_t> count, bytes;
};

class Counts {
public:
    void call(uint32_t function, const cupti::CallData&);
    void record(const cupti::Record&);
    void dropped(size_t records) { dropped_ += records; }

    nlohmann::json report(const Cupti&) const;

private:
    struct Calls {
        std::atomic<uint64_t> all, failed;
    };
    std::array<Calls, 4096> calls_{}; // by function number; CUPTI 13.0 has 806 driver functions
    std::atomic<uint64_t> beyond_{0}; // calls of functions with higher numbers
    std::array<Tally, std::size(cupti::directions)> copies_{};
    std::array<std::array<Tally, std::size(cupti::memories)>, 2> memory_{}; // [0]: allocated, [1]: released
    Tally sets_{};
    std::atomic<uint64_t> kernels_{0}, dropped_{0}, unknown_{0};
    mutable std::mutex lock_; // protects launches_
    std::map<std::string, uint64_t, std::less<>> launches_;
};

} // namespace witness
