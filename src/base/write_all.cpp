// SPDX-License-Identifier: Apache-2.0
#include "base/write_all.hpp"

#include <cerrno>
#include <unistd.h>

namespace gpusnoop {

bool write_all(int fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t done = ::write(fd, bytes.data(), bytes.size());
        if (done < 0 && errno != EINTR)
            return false;
        bytes.remove_prefix(done > 0 ? static_cast<size_t>(done) : 0);
    }
    return true;
}

} // namespace gpusnoop
