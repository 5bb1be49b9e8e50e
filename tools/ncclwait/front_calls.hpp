// SPDX-License-Identifier: Apache-2.0
// Calls that threads are in, as the kernel side keeps them: those whose processes were killed there are taken out.
#pragma once

#include "base/shared_array.hpp"
#include "base/shared_word.hpp"
#include "bpf/shared/front_call.h"
#include "proc/image.hpp"

#include <set>

namespace gpusnoop {

class FrontCalls {
public:
    explicit FrontCalls(int fd) : calls_(fd, FRONT_CALLS) {}

    void forget(const std::set<ImageId>& gone) const
    {
        for (size_t i = 0; i < FRONT_CALLS; i++) {
            volatile front_call& call = calls_[i];
            if (!load_acquire(call.owner) ||
                !gone.contains(ImageId{.pid = call.image.pid, .serial = call.image.serial}))
                continue;
            call.stack = 0;
            call.image.pid = 0;
            store_release<__u64>(call.owner, 0);
        }
    }

private:
    SharedArray<front_call> calls_;
};

} // namespace gpusnoop
