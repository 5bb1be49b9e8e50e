// SPDX-License-Identifier: Apache-2.0
// Checks before anything is loaded, each with its own error message; process-wide setup; --clean.
#pragma once

#include <cstddef>
#include <string>

namespace gpusnoop {

// Throws Error if tracing cannot work: not root, kernel too old or without BTF, inside a pid namespace. confidential:
// see attach/refusal.hpp.
void preflight(bool confidential);

// Drops all capabilities that no run needs, because the tool reads untrusted data.
void drop_capabilities();

} // namespace gpusnoop

struct bpf_object;

namespace gpusnoop {

// Reserves the descriptors of closed standard streams, or a file opened later would receive their output.
void hold_closed_streams();

// Raises the soft limit to the hard limit. Throws Error if even that is too low for any tool.
void raise_descriptor_limit();

// Throws Error if the limit is too low for the object's maps and programs, and the watched processes. Call between open
// and load.
void check_descriptors(const bpf_object* object, size_t processes);

// --clean: removes what killed runs left in the system, and returns a line about each kind. That is the uprobe events
// of --attach tracefs and unfinished files in the cache of kernel names; the kernel frees everything else. Keeps what
// belongs to a running process. Throws Error without the necessary privileges.
std::string clean_up();

} // namespace gpusnoop
