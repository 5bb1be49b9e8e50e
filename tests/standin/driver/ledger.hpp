// SPDX-License-Identifier: Apache-2.0
// Memory held by this process, by kind, for the truth file; and memory in use on each device.
#pragma once

#include "../abi_allocation.hpp"
#include "state.hpp"

namespace standin {

struct Held {
    Holding holding;
    size_t bytes;
    int device;
    bool on_device; // true: occupies memory of the device
    unsigned epoch = 0;
};

// The caller must hold memory_lock.
bool charge(Held&); // false if the device has too little free memory
enum class Reason { freed, context_destroyed };
void uncharge(const Held&, Reason = Reason::freed);

} // namespace standin
