// SPDX-License-Identifier: Apache-2.0
// Results of calls of any kind: whether they failed, and the error's name.
#pragma once

#include "bpf/shared/call.h"

#include <string>
#include <string_view>

namespace gpusnoop {

bool has_failed(const call_key& key);

// Returns the error's name: "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress" or "hipErrorIllegalAddress". For a
// call into the kernel driver, returns the driver's name for the status.
std::string error_name(const call_key& key);

// The error's name without its prefix: "ILLEGAL_ADDRESS".
std::string_view short_error(std::string_view name);

} // namespace gpusnoop
