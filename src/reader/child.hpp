// SPDX-License-Identifier: Apache-2.0
// Forked child process that runs a function, without exec. The tool is not affected if the function hangs, runs out of
// memory or crashes.
#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <functional>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// Closes all descriptors except standard error and the given ones, which are renumbered from Child::first_fd on.
// Redirects standard input and output to /dev/null. Returns false if the descriptor limit is too low.
bool keep_only(const std::vector<int>& descriptors);

// A child process. It is killed when the object is destroyed or when the thread that created it exits.
class Child {
public:
    static constexpr int first_fd = 3;

    // work: function that runs in the child, with only the descriptors that keep_only() keeps. The child exits with 0
    // when work returns, and with 1 if work throws. If a descriptor is invalid or fork() fails, ended() is true at
    // once.
    Child(std::initializer_list<int> descriptors, const std::function<void()>& work);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // True once the child has exited. Never waits.
    bool ended();
    bool succeeded() const { return succeeded_; } // true if the child has exited with 0
    void kill();
    // Returns true if the process is a child that was killed but has not exited, for example because it hangs in a
    // driver call.
    static bool is_left_behind(pid_t pid);
    pid_t pid() const { return pid_; }   // -1 if it was not started or has exited
    int error() const { return error_; } // errno if the start failed, else 0

private:
    void wait_until_descriptors_closed(std::chrono::milliseconds timeout);

    Fd inherited_; // read end of a pipe that hangs up when the child has closed the descriptors it inherited
    pid_t pid_ = -1;
    int error_ = 0;
    bool succeeded_ = false;
};

} // namespace gpusnoop
