// SPDX-License-Identifier: Apache-2.0
#include "base/read_text.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>

namespace gpusnoop {

std::optional<std::string> read_text(const Fd& file, size_t max)
{
    std::string text;
    std::array<char, 16384> buffer;
    while (text.size() <= max) {
        const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
        if (got == 0)
            break;
        if (got > 0)
            text.append(buffer.data(), static_cast<size_t>(got));
        else if (errno != EINTR)
            return std::nullopt;
    }
    return text;
}

std::optional<std::string> read_text(const std::string& path, size_t max, int flags)
{
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
    return file ? read_text(file, max) : std::nullopt;
}

} // namespace gpusnoop
