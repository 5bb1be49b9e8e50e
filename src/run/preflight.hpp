// SPDX-License-Identifier: Apache-2.0
// What must hold before anything is loaded, each with its own sentence.
#pragma once

#include <cstddef>
#include <string>

namespace gpusnoop {

// Throws Error: not root, kernel too old or without BTF, inside a pid namespace. confidential: see
// attach/refusal.hpp.
void preflight(bool confidential);

// No run needs more capabilities than some: the others are given up, for it reads what it cannot trust.
void drop_capabilities();

} // namespace gpusnoop

// What a program finds when it starts: standard streams, and how many files it may open.
struct bpf_object;

namespace gpusnoop {

// A standard stream that is closed stays so: nothing of our own may take its place, or output would go there.
void hold_closed_streams();

// As many as may be. Throws Error where no tool can do with them.
void raise_descriptor_limit();

// Between open and load. Throws Error where there are fewer than the object and so many watched processes take.
void check_descriptors(const bpf_object* object, size_t processes);

// What a run that was killed has left in the system: the kernel takes back everything but the uprobe events of
// --attach tracefs, and files that were being written to the cache of kernel names.

// Removes it, and says what that was, in lines for people. What belongs to a living process stays. Throws Error where
// this process may not.
std::string clean_up();

} // namespace gpusnoop
