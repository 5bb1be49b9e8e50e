// SPDX-License-Identifier: Apache-2.0
// A driver call in words: which it was, what it was about, what came of it.
#pragma once

#include "bpf/shared/ioctl.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

// Which call it was: "RM_CONTROL FB_GET_INFO_V2", "open". Numbers that nobody knows are shown as such, in hex.
std::string command_text(uint8_t kind, uint8_t node, uint64_t subject, uint8_t flags);
inline std::string command_text(const call_key& key)
{
    return command_text(key.kind, key.driver.node, key.subject, key.flags);
}

// The class of the object that a control is sent to, or an allocation makes; none of other calls.
std::optional<uint32_t> object_class(const call_key& key);
std::string class_text(std::optional<uint32_t> number);

// "ok", "NO_MEMORY", "EINVAL"; "?" where the driver's answer could not be read.
std::string outcome_text(uint8_t outcome, int32_t result);

} // namespace gpusnoop
