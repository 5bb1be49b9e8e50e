// SPDX-License-Identifier: Apache-2.0
// What a call has made the device do, as CUPTI's records have it.
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

// Of a call that has succeeded: any number of them.
void records_of(const TracedCall&, const char* name, const std::function<void(const AnyRecord&)>& each);

// The name of the kernel that a call launches; null if it launches none.
const char* kernel_of(const TracedCall&, const char* name);

// A function of the stand-in driver.
void* driver_function(const char* name);

} // namespace standin
