// SPDX-License-Identifier: Apache-2.0
// Writes to a descriptor of which nobody knows what is behind it, and waits for no reader: a pipe may be one that
// nobody reads, a terminal may be stopped.
#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <string_view>
#include <sys/types.h>

namespace gpusnoop {

class NonBlockingWriter {
public:
    explicit NonBlockingWriter(int fd); // not owned; as blocking as whoever shares it wants it

    // How many bytes were taken, 0 where there is no room now, or -errno. SIGPIPE must be ignored.
    ssize_t write(std::string_view bytes) const;
    // Until there is room, or the next write() says why there will never be any.
    void wait(std::chrono::milliseconds longest) const;

private:
    int fd() const { return own_ ? own_.get() : fd_; }

    int fd_;
    Fd own_; // a description of our own that does not block
    bool socket_ = false;
    bool may_block_ = false; // no such description could be had
};

} // namespace gpusnoop
