// SPDX-License-Identifier: Apache-2.0
// JSON values for the truth file.
#pragma once

#include "../abi.hpp"

#include <string>
#include <vector>

namespace workload::json {

std::string quoted(const std::string&);
std::string hex(uint64_t);
std::string triple(const standin::Dim3&);
std::string list(const std::vector<uint64_t>&);
const char* boolean(bool);
std::string or_null(bool known, const std::string& value); // null if not known
std::string field(const char* name, uint64_t);             // ,"name":value, with the leading comma

} // namespace workload::json
