// SPDX-License-Identifier: Apache-2.0
// The truth file: a process's calls, aggregated by equal fields, written as JSON lines when it exits.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace ioctls {

struct CallRecord {
    std::string device;
    uint64_t request = 0;
    uint32_t command = 0;
    bool wrapped = false, unreadable = false, killed = false, is_virtual = false;
    std::optional<bool> parameters_unreadable;
    std::optional<uint32_t> subject, status;
    std::optional<uint64_t> bytes;
    int error = 0;

    auto operator<=>(const CallRecord&) const = default;
};

void open_truth(const std::string& path);
void record_call(const CallRecord&, uint64_t duration_ns, uint64_t slept_ns);
void record_killed(const CallRecord&, int pid); // the call of a killed child
void record_file(const char* type, const std::string& device, int error, bool driver);
void record_mapping(const std::string& device, uint64_t bytes, int error, bool driver);
void record_xid(uint32_t number, uint32_t pid, const std::string& name, const std::string& text);
void forget_truth(); // in a forked child
void write_truth();

} // namespace ioctls
