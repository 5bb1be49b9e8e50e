// SPDX-License-Identifier: Apache-2.0
// Streams the strings of an untrusted JSON text, without building a tree in memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// The keys that lead to a value, outermost first. The keys of array elements are "0", "1", ...
using JsonPath = std::vector<std::string>;

// Calls `use` for each string value. False if the text is not JSON or nests more than 64 levels deep; `use` may have
// been called before that is detected.
bool each_json_string(std::string_view text, const std::function<void(const JsonPath&, const std::string&)>& use);
// As each_json_string(), but also calls `use` with an empty string for each empty object: Go programs encode a set as
// an object whose values are empty objects.
bool each_json_string_and_empty_object(std::string_view text,
                                       const std::function<void(const JsonPath&, const std::string&)>& use);

} // namespace gpusnoop
