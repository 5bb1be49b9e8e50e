// SPDX-License-Identifier: Apache-2.0
// Setup of cudagap's kernel side: its configuration, and the tracepoints that it needs.
#pragma once

#include "attach/refusal.hpp"
#include "base/bpf_object.hpp"
#include "tools/cudagap/columns.hpp"

#include <cstdint>

struct bpf_object;
struct cudagap_bpf;

namespace gpusnoop::cudagap {

// Call this after opening and before loading the BPF object. Unused features use no memory and load no programs.
// unit_ns: unit of histograms.
void configure_kernel_side(const BpfObject& bpf, const Settings& settings, uint64_t unit_ns);

// Throws Error that explains why the object could not be loaded, unless a retry may help.
void explain(const LoadError& error, bpf_object* object);

// Attaches the tracepoints. Call this before attaching probes, because a thread is followed from its first call on.
// Throws Error.
void follow_kernel(cudagap_bpf& skeleton);

} // namespace gpusnoop::cudagap
