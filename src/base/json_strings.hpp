// SPDX-License-Identifier: Apache-2.0
// The strings in a JSON text from a source that is not trusted, without a tree of it in memory.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// The keys that lead to a value from the outside in; the elements of an array have "0", "1", ...
using JsonPath = std::vector<std::string>;

// Hands out each string that is a value. False where the text is not JSON or nests deeper than the files of any
// container runtime do; some strings may have been handed out by then.
bool each_json_string(std::string_view text, const std::function<void(const JsonPath&, const std::string&)>& use);
// The same, and an empty string for each object that is a value and has nothing in it: Go writes sets so.
bool each_json_string_and_set(std::string_view text,
                              const std::function<void(const JsonPath&, const std::string&)>& use);

} // namespace gpusnoop
