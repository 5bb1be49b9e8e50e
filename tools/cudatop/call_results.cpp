// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/call_results.hpp"

#include "attach/probes.hpp"
#include "bpf/shared/ioctl.h"
#include "gpu/driver_names.hpp"
#include "rows/calls.hpp"

namespace gpusnoop {

bool has_failed(const call_key& key)
{
    return part_of(key) == CallPart::driver ? is_failure(key.driver.outcome, key.result) != 0 : key.result != 0;
}

std::string error_name(const call_key& key)
{
    if (part_of(key) == CallPart::driver)
        return outcome_text(key.driver.outcome, key.result);
    return result_name(library_of(key.layer), key.result);
}

std::string_view short_error(std::string_view name)
{
    for (const std::string_view prefix : {"CUDA_ERROR_", "cudaError", "hipError"})
        if (name.size() > prefix.size() && name.starts_with(prefix))
            return name.substr(prefix.size());
    return name;
}

} // namespace gpusnoop
