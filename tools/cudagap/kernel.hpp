// SPDX-License-Identifier: Apache-2.0
// cudagap's kernel side: its configuration, and the tracepoints that it needs.
#pragma once

#include "attach/refusal.hpp"
#include "base/bpf_object.hpp"
#include "tools/cudagap/columns.hpp"

#include <cstdint>

struct bpf_object;
struct cudagap_bpf;

namespace gpusnoop::cudagap {

// To be called between open and load. Unused features use no memory and load no programs. unit_ns: unit of
// histograms.
void configure_kernel_side(const BpfObject& bpf, const Settings& settings, uint64_t unit_ns);

// Explains a failed load: throws Error if a retry cannot help.
void explain(const LoadError& error, bpf_object* object);

// Attaches the tracepoints. To be called before probes are attached, because threads are followed from their first call
// on. Throws Error.
void follow_kernel(cudagap_bpf& skeleton);

} // namespace gpusnoop::cudagap
