// SPDX-License-Identifier: Apache-2.0
// Forked child process that runs a function, without exec. If the function hangs, runs out of memory or crashes, the
// tool is not affected.
#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <functional>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Keeps standard error and these descriptors, which it renumbers from Child::first_fd on. 0 and 1 become /dev/null, and
// all other descriptors are closed. Returns false if the limit of descriptors is too low.
bool keep_only(const std::vector<int>& descriptors);

// A child process. It is killed when the object is destroyed or when the thread that created it exits.
class Child {
public:
    static constexpr int first_fd = 3;

    // work: runs in the child, with only standard error and these descriptors, renumbered from first_fd on. The child
    // exits with 0 after work, and with 1 if work throws. If a descriptor is invalid or fork() fails, ended() is true
    // at once.
    Child(std::initializer_list<int> descriptors, const std::function<void()>& work);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // True once the child has exited. Never waits.
    bool ended();
    bool succeeded() const { return succeeded_; } // the child has exited with 0
    void kill();
    // Returns true for a child that was killed and has not exited, for example because it hangs in a driver call.
    static bool is_left_behind(pid_t pid);
    pid_t pid() const { return pid_; }   // -1 if it was not started or has exited
    int error() const { return error_; } // errno of a failed start; or 0

private:
    void wait_until_descriptors_closed(std::chrono::milliseconds timeout);

    Fd inherited_; // pipe that reaches its end once the child has closed its inherited descriptors; empty afterwards
    pid_t pid_ = -1;
    int error_ = 0;
    bool succeeded_ = false;
};

} // namespace gpusnoop
