// SPDX-License-Identifier: Apache-2.0
// Whose stack a BPF program runs on, by the machine code that the kernel has made of it.
#pragma once

#include "attach/calling_convention.hpp"

#include <cstddef>
#include <span>

struct bpf_object;

namespace gpusnoop {

// True where code takes the stack from the CPU it runs on.
bool takes_stack_of_cpu(std::span<const std::byte> code, Machine machine = host);

// True where some uprobe program of a loaded object does so, or its code cannot be seen.
bool may_have_stack_of_cpu(const bpf_object* object);

} // namespace gpusnoop
