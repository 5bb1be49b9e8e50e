// SPDX-License-Identifier: Apache-2.0
// What came of a call, whichever kind it is.
#pragma once

#include "bpf/shared/call.h"

#include <string>
#include <string_view>

namespace gpusnoop {

bool has_failed(const call_key& key);

// "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "hipErrorIllegalAddress"; of a call into the kernel's
// driver, its own word.
std::string error_name(const call_key& key);

// "ILLEGAL_ADDRESS": without what all of them begin with.
std::string_view short_error(std::string_view name);

} // namespace gpusnoop
