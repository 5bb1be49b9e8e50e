// SPDX-License-Identifier: Apache-2.0
// What is wrong with a process, in words: THE table of rules. Each says what the host sees; none says how busy a GPU
// is.
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

// The higher, the worse.
enum class Severity : uint8_t {
    none,
    note,    // worth knowing
    warning, // time or memory is lost
    alarm,   // it does not work
};

std::string_view severity_name(Severity severity); // "alarm"
std::string_view severity_mark(Severity severity); // "!!", "!", "."

struct Finding {
    Severity severity = Severity::none;
    std::string words; // to be read behind the name of the process
};

struct Rule {
    std::string_view name;  // in a column of eight characters, and in JSON
    std::string_view about; // where it speaks
    std::string_view next;  // the command to be typed next, with PID for the process
    std::optional<Finding> (*check)(const Signs&);
    bool error = false;    // reports a call that failed, which may be why a process ends
    bool of_group = false; // is about several processes, and outlives each of them
};

std::span<const Rule> rules();

// Of so many launches, most are too small for a GPU.
bool are_small(uint64_t small_grids, uint64_t grids, double seconds);

// Copies are many and small: where they come from is asked for only then.
bool copies_are_small(const Signs& signs);

// How long counts are looked back at, at most (an interval may be longer).
inline constexpr double window_seconds = 5;

// A rule that fired, and the process that it is about.
struct Verdict {
    ImageId process;
    std::string name;  // of the process
    std::string owner; // its pod or container; empty: none
    std::string pod_namespace, pod, container;
    uint32_t tid = 0; // of the thread that it is about; 0: of the whole process
    const Rule* rule = nullptr;
    Severity severity = Severity::none;
    std::string words;
    std::string next;   // the command
    int32_t stack = -1; // where in the program, as calls have it; negative: not known
    uint64_t caller = 0;
    bool exited = false; // the process
    uint64_t group = 0;  // shared by processes that may restart each other; 0: unknown
};

// The worst first, then by name.
bool comes_before(const Verdict& a, const Verdict& b);

} // namespace gpusnoop
