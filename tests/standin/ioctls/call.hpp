// SPDX-License-Identifier: Apache-2.0
// ioctl calls on GPU drivers, with structures that are valid, or invalid on purpose.
#pragma once

#include "../workload/script.hpp"

namespace ioctls {

void call(const workload::Step&);   // a named command
void number(const workload::Step&); // any request number
void killed(const workload::Step&); // a call that is killed before it returns
void xid(const workload::Step&);    // an Xid that no call causes

inline constexpr const char* call_options =
    "size subject status errno bytes arg params xfer delay_us gap_us xid xid_pid xid_name xid_text";

} // namespace ioctls
