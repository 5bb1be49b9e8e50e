// SPDX-License-Identifier: Apache-2.0
// What this process holds of which kind of memory, for the truth, and how much of it is each device's.
#pragma once

#include "../abi_allocation.hpp"
#include "state.hpp"

namespace standin {

struct Held {
    Holding holding;
    size_t bytes;
    int device;
    bool on_device; // takes some of its memory
    unsigned epoch = 0;
};

// Under memory_lock.
bool hold(Held&); // false: the device has not got so much
enum class Why { freed, context_gone };
void let_go(const Held&, Why = Why::freed);
uint64_t in_use(int device);

} // namespace standin
