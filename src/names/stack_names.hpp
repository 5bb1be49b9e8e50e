// SPDX-License-Identifier: Apache-2.0
// Symbolizer of user stack addresses: "symbol+0x1f (libfoo.so)". Lookups run in a helper (UserSymbols), because the
// process controls the files; the names are cached here.
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

// The function in these frames that called CUDA, shortened and with its file: "train::step (train)". Empty if it has no
// name.
std::string calling_function(std::span<const std::string> frames);

class StackNames {
public:
    explicit StackNames(WaitBudget* waits = nullptr); // see Reader

    // addresses: innermost first; all others are return addresses. An address without a name, or without one yet, is
    // "0x...". Addresses after the last one in code are dropped: the stack walk has left the stack. The process
    // controls the names: show them with printable().
    std::vector<std::string> frames(const ImageId& image, std::span<const uint64_t> addresses);

    // To be called at least once a second: applies late answers, and replaces a helper that hangs.
    void tick() { reader_.poll(); }

    void forget(const ImageId& image);

private:
    using Key = std::pair<uint64_t, bool>; // address, and whether it is the innermost one
    struct Image {
        const std::string* find(const Key& key) const;

        uint64_t generation = 0;            // of its mappings (StackAnswer)
        std::map<Key, std::string> lasting; // until the generation changes
        std::map<Key, std::string> passing; // for a second: a file may be mapped there later
        std::set<Key> awaited;              // sent to the helper without waiting, in the same second
        std::chrono::steady_clock::time_point passing_since;
    };

    void make_room();
    void ask_for_later(Image& image, const StackQuestion& question);
    bool apply(const Message& message);

    std::map<ImageId, Image> images_;
    Reader reader_;
};

} // namespace gpusnoop
