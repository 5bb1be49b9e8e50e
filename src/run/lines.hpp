// SPDX-License-Identifier: Apache-2.0
// The lines of -e (bpf/base/lines.bpf.h), read in the order in which they were sent.
#pragma once

#include "base/shared_array.hpp"
#include "bpf/shared/line.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace gpusnoop {

class Lines {
public:
    using Take = std::function<void(const void* record, size_t size)>;

    // So many elements of the map make so many places; bytes: of memory.
    static uint32_t places_in(uint64_t bytes);
    // The bits of the number of lines that wait that are all 0 when these have become an eighth more, or so.
    static uint64_t wake_bits(uint32_t places);

    // map: its descriptor, with so many places. Throws Error.
    Lines(int map, uint32_t places);

    uint64_t sent() const; // up to now
    // Hands over those before `end`, until it takes too long or comes to one that is still being written. True where
    // there was no time for some.
    bool take(uint64_t end, const Take& take, std::chrono::steady_clock::time_point until);

private:
    // Seldom: the traced threads look at the number each time.
    void give_back();
    struct Returned {
        explicit Returned(Lines& lines) : lines_(lines) {}
        ~Returned() { lines_.give_back(); }
        Lines& lines_;
    };
    volatile line_ends& ends() const { return reinterpret_cast<volatile line_ends&>(array_[0]); }

    SharedArray<line> array_;
    uint32_t places_;
    uint64_t taken_ = 0;
};

} // namespace gpusnoop
