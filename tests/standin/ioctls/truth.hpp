// SPDX-License-Identifier: Apache-2.0
// What a process did, aggregated by equal fields, as JSON lines at its end.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace ioctls {

struct Told { // of a call
    std::string device;
    uint64_t request = 0;
    uint32_t command = 0;
    bool wrapped = false, unreadable = false, killed = false, is_virtual = false;
    std::optional<bool> parameters_unreadable;
    std::optional<uint32_t> subject, status;
    std::optional<uint64_t> bytes;
    int error = 0;

    auto operator<=>(const Told&) const = default;
};

void open_truth(const std::string& path);
void tell(const Told&, uint64_t duration_ns, uint64_t slept_ns);
void tell_dead(const Told&, int pid); // the one call of a child that did not live to tell it
void tell_file(const char* what, const std::string& device, int error, bool driver);
void tell_mapping(const std::string& device, uint64_t bytes, int error, bool driver);
void tell_xid(uint32_t number, uint32_t pid, const std::string& name, const std::string& text);
void forget_truth(); // in a forked child
void write_truth();

} // namespace ioctls
