// SPDX-License-Identifier: Apache-2.0
// Addresses of a process' user stack -> "symbol+0x1f (libfoo.so)", as far as they are known. Who looks them up is a
// helper (UserSymbols), as it reads what the process has chosen.
#pragma once

#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

struct StackQuestion;

// Of the frames of a stack, the function that has called into CUDA, short and with its file: "train::step (train)".
// Empty where it has no name.
std::string calling_function(std::span<const std::string> frames);

class StackNames {
public:
    explicit StackNames(WaitBudget* waits = nullptr); // see Reader

    // Innermost first: every other address is a return address. One that has no name, or none yet, is "0x...". A stack
    // that was followed too far, through a register that held something else, ends before that. Names come as the
    // process has them: show them with printable().
    std::vector<std::string> frames(const ImageId& image, std::span<const uint64_t> addresses);

    // Now and then: takes what has come late, and notices that the helper hangs.
    void tick() { reader_.poll(); }

    void forget(const ImageId& image);

private:
    using Key = std::pair<uint64_t, bool>; // address, and whether it is the innermost
    struct Image {
        const std::string* find(const Key& key) const;

        uint64_t generation = 0;            // of its mappings, as the helper tells it
        std::map<Key, std::string> lasting; // as long as the generation is that one
        std::map<Key, std::string> passing; // for a second: something may be mapped there later
        std::set<Key> awaited;              // asked for without waiting, within the same second
        std::chrono::steady_clock::time_point passing_since;
    };

    void make_room();
    void ask_for_later(Image& image, const StackQuestion& question);
    bool apply(const Message& message);

    std::map<ImageId, Image> images_;
    Reader reader_;
};

} // namespace gpusnoop
