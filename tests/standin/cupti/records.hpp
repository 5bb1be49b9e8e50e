// SPDX-License-Identifier: Apache-2.0
// Activity records (CUPTI's format) of a call.
#pragma once

#include "../../gpu/witness/cupti_abi.hpp"
#include "../abi_trace.hpp"

#include <cstddef>
#include <functional>

namespace standin {

union AnyRecord {
    cupti::Record any;
    cupti::Copy copy;
    cupti::Set set;
    cupti::Memory memory;
};

// Passes the records of a successful call, if any, to `each`.
void records_of(const TracedCall&, const char* name, const std::function<void(const AnyRecord&)>& each);

// Name of the kernel that a call launches; null if it launches none.
const char* kernel_of(const TracedCall&, const char* name);

// Address of a function of the stand-in driver.
void* driver_function(const char* name);

} // namespace standin
