// SPDX-License-Identifier: Apache-2.0
// A part of the work in a process of its own, without a new program: what may hang, grow or crash there leaves the tool
// as it is.
#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <functional>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// This process keeps these descriptors, as Child::first_fd and on, and standard error. 0 and 1 become /dev/null, and
// all others are closed. Returns false if there is no room for them.
bool keep_only(const std::vector<int>& descriptors);

// Ends with the object, and with the process that made it.
class Child {
public:
    static constexpr int first_fd = 3;

    // work: with these descriptors as first_fd and on, and no others but standard error. Without a process, or a
    // descriptor, there is nothing to wait for. What work throws ends it with 1, as does what it leaves undone.
    Child(std::initializer_list<int> descriptors, const std::function<void()>& work);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // True once it has ended. Never waits.
    bool ended();
    bool succeeded() const { return succeeded_; } // it has ended, by itself and well
    void kill();
    // Returns true for a child that was killed and has not exited, as in a call to a driver that hangs.
    static bool is_left_behind(pid_t pid);
    pid_t pid() const { return pid_; }   // -1 where there is none, or none any more
    int error() const { return error_; } // errno, if no process could be started; or 0

private:
    void wait_until_descriptors_closed(std::chrono::milliseconds longest);

    Fd inherited_; // at its end once the child has closed what it inherited; none where that was seen
    pid_t pid_ = -1;
    int error_ = 0;
    bool succeeded_ = false;
};

} // namespace gpusnoop
