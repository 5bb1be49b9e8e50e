// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <sys/resource.h>

namespace gpusnoop {

// While it exists, limits the size of files that this process writes (RLIMIT_FSIZE).
class SmallFiles {
public:
    explicit SmallFiles(rlim_t most) : handler_(std::signal(SIGXFSZ, SIG_IGN))
    {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit now{most, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &now);
    }
    ~SmallFiles()
    {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    SmallFiles(const SmallFiles&) = delete;
    SmallFiles& operator=(const SmallFiles&) = delete;

private:
    rlimit before_{};
    void (*handler_)(int);
};

} // namespace gpusnoop
