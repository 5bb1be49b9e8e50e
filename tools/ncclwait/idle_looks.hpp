// SPDX-License-Identifier: Apache-2.0
// When to look at what the processes of a silent communicator do. Most of these are idle, and while they are looked at,
// their waits are traced. So it is for a few seconds, and again after pauses that double while nothing changes.
#pragma once

#include <cstdint>
#include <map>

namespace gpusnoop {

class IdleLooks {
public:
    static constexpr unsigned looks = 4; // in a row: an answer comes by the second one, and two are to be the same
    static constexpr uint64_t first_pause_ns = 1'000'000'000, longest_pause_ns = 16'000'000'000;

    // To be called once a second for each that is silent. waits: one of its threads is in a wait for the device, as far
    // as is known.
    bool is_due(uint64_t communicator, uint64_t since_ns, bool waits, uint64_t now_ns);
    // Those that have not been asked about since the last time are not silent any more.
    void end_round();

private:
    struct Silence {
        uint64_t since_ns = 0;
        unsigned looked = 0; // in a row
        uint64_t pause_ns = 0, until_ns = 0;
        bool asked = false;
    };
    std::map<uint64_t, Silence> silences_;
};

} // namespace gpusnoop
