// SPDX-License-Identifier: Apache-2.0
// Streaming reader for the strings in an untrusted JSON text, which builds no tree in memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// The keys that lead to a value, outermost first. Array elements have the keys "0", "1", ...
using JsonPath = std::vector<std::string>;

// Calls `use` for each string value. Returns false if the text is not JSON or is nested more than 64 levels deep; `use`
// may already have been called for the strings before the error.
bool each_json_string(std::string_view text, const std::function<void(const JsonPath&, const std::string&)>& use);
// Like each_json_string(), but also calls `use` with an empty string for each empty object: Go programs encode a set as
// an object whose values are empty objects.
bool each_json_string_and_empty_object(std::string_view text,
                                       const std::function<void(const JsonPath&, const std::string&)>& use);

} // namespace gpusnoop
