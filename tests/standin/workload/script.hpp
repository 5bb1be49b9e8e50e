// SPDX-License-Identifier: Apache-2.0
// A script: steps, one per line or separated by ';'. '#' starts a comment. A step is a name, words and key=value
// options; some steps contain a block that ends with "end". ../README.md lists all steps.
#pragma once

#include "../abi.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace workload {

struct Step {
    int line = 0;
    std::string text;
    std::string name;
    void (*run)(const Step&) = nullptr;
    std::vector<std::string> words;
    std::map<std::string, std::string> options;
    std::vector<Step> body;

    // The word at `index`, or the option's value. If there is no such word and no fallback, the functions call wrong().
    std::string word(size_t index) const;
    std::string word(size_t index, const std::string& fallback) const;
    uint64_t number(size_t index) const;
    std::string option(const std::string& key, const std::string& fallback) const;
    uint64_t number(const std::string& key, uint64_t fallback) const;
    standin::Dim3 triple(const std::string& key) const; // x[,y[,z]]; each defaults to 1
    bool has(const std::string& key) const { return options.contains(key); }
};
using Steps = std::vector<Step>;

uint64_t to_number(const Step&, std::string text); // calls wrong() if it is not a number

// A step of a program's language.
struct StepRow {
    std::string_view name;
    void (*run)(const Step&);
    std::string_view options = ""; // allowed keys, separated by spaces
    bool block = false;
};
enum { with_block = true };

// All programs have the steps repeat, loop, forever, sleep, wait, touch and name.
Steps parse(std::string_view text, std::span<const StepRow> rows);
std::string render(const Steps&); // converts back to a script
void run(const Steps&);

// Command line: [--truth FILE] [--banner] [--append] (SCRIPT | -f FILE). --append: the truth file exists.
struct Arguments {
    std::string script, truth;
    bool append = false, banner = false;
};
Arguments arguments(int argc, char** argv);

// True after SIGTERM or SIGINT, if stop_on_signals() was called: loops end, and the truth file is written.
bool stopping();
void stop_on_signals(int flags); // of sigaction()

void sleep_ms(uint64_t ms);

// Replaces the escapes \xHH, \n, \t, \s (space) and \\ in a word, so that scripts can contain any name.
std::string unescaped(const std::string&);

// Errors: print a message and exit. wrong(): an error in the script, status 2. fail(): an error at run time, status 1.
// skip(): no device, or not supported by a real driver, status 77.
[[noreturn]] void wrong(const Step&, const std::string& message);
[[noreturn]] void fail(const std::string& message);
[[noreturn]] void skip(const std::string& message);

} // namespace workload
