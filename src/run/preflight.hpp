// SPDX-License-Identifier: Apache-2.0
// Checks and process-wide setup before anything is loaded, and --clean.
#pragma once

#include <cstddef>
#include <string>

namespace gpusnoop {

// Throws Error if tracing cannot work: without root, inside a pid namespace, or on a kernel that is too old or has no
// BTF. confidential: whether the kernel is locked down in confidentiality mode (attach/refusal.hpp).
void preflight(bool confidential);

// Drops the capabilities that no run needs, because the tool reads untrusted data.
void drop_capabilities();

} // namespace gpusnoop

struct bpf_object;

namespace gpusnoop {

// Reserves the descriptors of closed standard streams. Otherwise, a file opened later could get the number of such a
// stream, and output to the stream would be written to that file.
void hold_closed_streams();

// Raises the soft limit on open files to the hard limit. Throws Error if the hard limit is below the number of files
// that every tool opens during start-up.
void raise_descriptor_limit();

// Throws Error if the limit on open files is too low for the object's maps and programs and for this number of watched
// processes. Call between open and load.
void check_descriptors(const bpf_object* object, size_t processes);

// Implements --clean. Removes what killed runs left behind: uprobe events of --attach tracefs, and unfinished files in
// the cache of kernel names. The kernel frees everything else. Keeps anything that belongs to a running process.
// Returns a message for the user, with a line for each kind of leftover. Throws Error if privileges are missing.
std::string clean_up();

} // namespace gpusnoop
