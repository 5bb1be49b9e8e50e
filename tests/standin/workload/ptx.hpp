// SPDX-License-Identifier: Apache-2.0
// PTX for real drivers, for the oldest devices that any current driver supports.
#pragma once

#include <string>

namespace workload {

// Returns PTX of a module with one kernel without parameters. The kernel's name selects its action: spin_us_N runs for
// N microseconds, out_of_bounds writes to an invalid address, too_many_threads allows at most 32 threads, and others do
// nothing. Returns "" if PTX does not allow the name.
std::string ptx_of(const std::string& kernel);

} // namespace workload
