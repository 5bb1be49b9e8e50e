// SPDX-License-Identifier: Apache-2.0
// What is asked of the helper that finds which waits threads are in.
#pragma once

#include "bpf/shared/thread_registers.h"
#include "probes/probes.hpp"
#include "stacks/inside_messages.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace gpusnoop {

// The functions that wait, of these layers, at the numbers of their rows less one; others have no name there.
std::vector<std::string_view> symbols_of_waits(std::span<const Probe> probes, bool driver, bool runtime);

InsideQuestion::Thread question_of(const thread_registers& registers);

} // namespace gpusnoop
