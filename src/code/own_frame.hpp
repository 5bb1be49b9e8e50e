// SPDX-License-Identifier: Apache-2.0
// The words of its own frame that a function keeps while it hands arguments on.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace gpusnoop {

// Held: what a word holds; .whole says whether all of it is known.
template<class Held>
class OwnFrame {
public:
    // How far the stack pointer is from where it was at the entry.
    int64_t stack() const { return stack_; }

    bool move_stack(int64_t by)
    {
        constexpr int64_t most = 4096;
        if (by < -most || by > most)
            return false;
        stack_ += by;
        std::erase_if(words_, [this](const auto& word) { return word.first < stack_; });
        return stack_ <= 0;
    }

    // False where it is its caller's, where arguments may be. at: from where the stack pointer was at the entry.
    bool store(int64_t at, int64_t bytes, const Held& what)
    {
        if (at < stack_ || at + bytes > 0)
            return false;
        std::erase_if(words_,
                      [&](const auto& word) { return word.first < at + bytes && at < word.first + word.second.first; });
        words_[at] = {bytes, what};
        return true;
    }

    Held load(int64_t at, int64_t bytes) const
    {
        const auto word = words_.find(at);
        if (word == words_.end() || word->second.first < bytes)
            return {};
        Held held = word->second.second;
        held.whole = held.whole && bytes == 8;
        return held;
    }

private:
    std::map<int64_t, std::pair<int64_t, Held>> words_; // bytes, and what they hold
    int64_t stack_ = 0;
};

} // namespace gpusnoop
