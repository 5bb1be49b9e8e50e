// SPDX-License-Identifier: Apache-2.0
// What is attached to the kernel itself, whoever does it.
#pragma once

#include <string>
#include <vector>

namespace gpusnoop {

// Programs on functions of the kernel and its modules.
class KernelHooks {
public:
    virtual ~KernelHooks() = default;

    // After load, and each second: hooks what has come since. True where there was anything. Throws Error.
    virtual bool hook_new_drivers() = 0;
    // What it waits for, in a sentence; empty where there is something to trace.
    virtual std::string waits_for() const = 0;
    // What is there and cannot be traced, in a sentence; empty where there is no such thing.
    virtual std::string not_traced() const = 0;
    virtual unsigned functions() const = 0;
    virtual std::string ways() const = 0;
    virtual std::vector<std::string> summary() const = 0; // lines for -v
};

} // namespace gpusnoop
