// SPDX-License-Identifier: Apache-2.0
// Answers that are too long for one message: sent in parts, put together again up to a bound.
#pragma once

#include "reader/reader.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace gpusnoop {

// In the helper. False if its owner has gone.
inline bool send_in_parts(Connection& owner, std::string_view bytes)
{
    constexpr size_t part_max = Connection::message_max - 1;
    do {
        const std::string_view part = bytes.substr(0, part_max);
        bytes.remove_prefix(part.size());
        if (!owner.send((bytes.empty() ? "." : "+") + std::string(part)))
            return false;
    } while (!bytes.empty());
    return true;
}

// In its owner: the parts of one answer at a time.
class JoinedParts {
public:
    explicit JoinedParts(size_t bytes_max) : bytes_max_(bytes_max) {}

    Reader::Reply add(std::string_view message)
    {
        const bool is_last = message.starts_with('.');
        if ((!is_last && !message.starts_with('+')) || bytes_.size() + message.size() - 1 > bytes_max_)
            return Reader::Reply::invalid;
        bytes_ += message.substr(1);
        return is_last ? Reader::Reply::complete : Reader::Reply::partial;
    }
    // The whole answer; the next one begins.
    std::string extract() { return std::exchange(bytes_, {}); }

private:
    size_t bytes_max_;
    std::string bytes_;
};

} // namespace gpusnoop
