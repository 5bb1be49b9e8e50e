// SPDX-License-Identifier: Apache-2.0
// What a real driver is given to compile: PTX for the oldest devices that any driver in use serves.
#pragma once

#include <string>

namespace workload {

// A module with one kernel of this name and no parameters. What it does, its name says: spin_us_N runs that long,
// out_of_bounds writes where nothing is, too_many_threads takes 32 of them at most; any other one does nothing.
// Empty if PTX has no such names.
std::string ptx_of(const std::string& kernel);

} // namespace workload
