// SPDX-License-Identifier: Apache-2.0
// The lines of -e as a timeline, in a file beside what is shown.
#pragma once

#include "output/outputs_beside.hpp"

#include <string>

namespace gpusnoop {

// Packed where the name ends in ".gz". What has been written is a trace at any time: its list needs no end. Throws
// Error where it cannot be written; check() does where it is not whole.
OutputBeside make_trace_output(const std::string& path);

} // namespace gpusnoop
