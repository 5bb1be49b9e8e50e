// SPDX-License-Identifier: Apache-2.0
// The kernel side of cudagap: what it is told, and the tracepoints that it needs.
#pragma once

#include "attach/refusal.hpp"
#include "base/bpf_object.hpp"
#include "tools/cudagap/columns.hpp"

#include <cstdint>

struct bpf_object;
struct cudagap_bpf;

namespace gpusnoop::cudagap {

// Between open and load: what is not asked for has no memory and no programs. unit_ns: that histograms count in.
void configure_kernel_side(const BpfObject& bpf, const Settings& settings, uint64_t unit_ns);

// It could not be loaded: throws Error where that is for good.
void explain(const LoadError& error, bpf_object* object);

// Before any call: a thread that has called is followed from then on. Throws Error.
void follow_kernel(cudagap_bpf& skeleton);

} // namespace gpusnoop::cudagap
