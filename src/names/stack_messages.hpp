// SPDX-License-Identifier: Apache-2.0
// What StackNames and the helper that looks addresses up for it tell each other. A question has one answer each.
#pragma once

#include "proc/mapped_file.hpp"
#include "reader/message.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusnoop {

struct StackQuestion {
    static constexpr size_t addresses_max = 128;

    ImageId image{};
    std::vector<uint64_t> addresses{}; // none: the image is gone
    bool innermost = false;            // the first of them
};

void fields(auto& each, same_as_const<StackQuestion> auto& q)
{
    each(q.image.pid, q.image.serial, q.addresses, q.innermost);
}

struct StackAnswer {
    struct Frame {
        uint64_t address = 0;
        bool innermost = false;
        bool lasting = false; // as long as the generation is this one
        std::string text{};   // empty: there is no code there
    };
    static constexpr size_t text_max = 48 << 10; // bytes of one; then there is no room for more

    ImageId image{};
    uint64_t generation = 0;     // another one when the image's mappings have changed
    std::vector<Frame> frames{}; // as many as there was room for, at least one
};

void fields(auto& each, same_as_const<StackAnswer::Frame> auto& f)
{
    each(f.address, f.innermost, f.lasting, f.text);
}

void fields(auto& each, same_as_const<StackAnswer> auto& a)
{
    each(a.image.pid, a.image.serial, a.generation, a.frames);
}

} // namespace gpusnoop
