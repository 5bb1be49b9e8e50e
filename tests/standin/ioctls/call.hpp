// SPDX-License-Identifier: Apache-2.0
// Calls: a struct as the driver wants it, or as a test wants it to be wrong.
#pragma once

#include "../workload/script.hpp"

namespace ioctls {

void call(const workload::Step&);   // of a command that has a name
void number(const workload::Step&); // any request
void killed(const workload::Step&); // a call that does not return
void xid(const workload::Step&);    // an error that no call brings about

inline constexpr const char* call_options =
    "device size subject status status_at errno bytes arg params params_size client parent object new xfer delay_us "
    "gap_us xid xid_pid xid_name xid_text";

} // namespace ioctls
