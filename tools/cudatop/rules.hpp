// SPDX-License-Identifier: Apache-2.0
// Table of diagnosis rules, which turn the signs of a process into verdicts. Rules know what happens on the host, but
// not what a GPU does.
#pragma once

#include "proc/mapped_file.hpp"
#include "tools/cudatop/signs.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// In ascending order.
enum class Severity : uint8_t {
    none,
    note,    // worth knowing
    warning, // wastes time or memory
    alarm,   // the process does not work
};

std::string_view severity_name(Severity severity); // "alarm"
std::string_view severity_mark(Severity severity); // "!!", "!", "."

struct Finding {
    Severity severity = Severity::none;
    std::string words; // printed after the name of the process
};

struct Rule {
    std::string_view name;  // shown in a column and in JSON; at most eight characters
    std::string_view about; // the condition, in words
    std::string_view next;  // the command to type next, with PID for the process
    std::optional<Finding> (*check)(const Signs&);
    bool error = false;    // the rule reports failed calls, which may be why a process exits
    bool of_group = false; // the rule is about several processes; its verdict remains when they exit
};

std::span<const Rule> rules();

// True if there are many launches, and most are too small to fill a GPU.
bool are_small(uint64_t small_grids, uint64_t grids, double seconds);

// True if there are many copies and most are small. The calling function is looked up only if this is true.
bool copies_are_small(const Signs& signs);

// Rules use the counts of the last five seconds, or of the last interval if that is longer.
inline constexpr double window_seconds = 5;

// A rule that fired, and the process that it is about.
struct Verdict {
    ImageId process;
    std::string name;  // name of the process
    std::string owner; // pod or container of the process; empty if it has none
    std::string pod_namespace, pod, container;
    uint32_t tid = 0; // the thread that the verdict is about; 0: the whole process
    const Rule* rule = nullptr;
    Severity severity = Severity::none;
    std::string words;
    std::string next;   // the command to type next
    int32_t stack = -1; // id of the call stack, as in call_key; negative: unknown
    uint64_t caller = 0;
    bool exited = false; // the process has exited
    uint64_t group = 0;  // id of a group of processes that may be restarts of each other; 0: unknown
};

// Order of verdicts: the worst first, then in the order of the rules, then by name.
bool comes_before(const Verdict& a, const Verdict& b);

} // namespace gpusnoop
