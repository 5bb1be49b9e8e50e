// SPDX-License-Identifier: Apache-2.0
// The workload's script: steps, one per line or separated by ';', '#' to the end of the line is a comment. A step is a
// name, plain words and key=value options; some steps hold a block that ends with "end". README.md lists them all.
#pragma once

#include "../abi.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace workload {

struct Step {
    int line = 0;
    std::string text;
    std::string name;
    std::vector<std::string> words;
    std::map<std::string, std::string> options;
    std::vector<Step> body;

    // The word at `index`, or the option's value. Without a fallback the word must be there.
    std::string word(size_t index) const;
    std::string word(size_t index, const std::string& fallback) const;
    uint64_t number(size_t index) const;
    std::string option(const std::string& key, const std::string& fallback) const;
    uint64_t number(const std::string& key, uint64_t fallback) const;
    standin::Dim3 triple(const std::string& key) const; // x[,y[,z]], 1 where left out
    bool has(const std::string& key) const { return options.contains(key); }
};
using Steps = std::vector<Step>;

uint64_t to_number(const Step&, std::string text); // of the step's; wrong() if it is none

// What the parser must know about a step: nothing if there is none of that name.
struct Shape {
    bool block;
    std::string_view options; // allowed keys, separated by spaces
};
using Shapes = std::function<const Shape*(const std::string& name)>;

Steps parse(std::string_view text, const Shapes&);
std::string render(const Steps&); // the script again

// \xHH, \n, \t, \s (space) and \\ in a word, so that a script can carry any name.
std::string unescaped(const std::string&);

// The script is wrong: says where and exits with 2. Something is missing at run time: says what and exits with 1,
// or with 77 where that is a device, or the stand-in on a machine with one.
[[noreturn]] void wrong(const Step&, const std::string& message);
[[noreturn]] void fail(const std::string& message);
[[noreturn]] void skip(const std::string& message);

} // namespace workload
