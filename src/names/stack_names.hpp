// SPDX-License-Identifier: Apache-2.0
// Symbolizer of user stack addresses: "symbol+0x1f (libfoo.so)". A helper process looks up the names (UserSymbols),
// because the files belong to the traced process and cannot be trusted. This class caches the names.
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

// Returns the function in these frames that called CUDA, shortened, with its file: "train::step (train)". Returns an
// empty string if the function has no name.
std::string calling_function(std::span<const std::string> frames);

class StackNames {
public:
    explicit StackNames(WaitBudget* waits = nullptr); // waits: see Reader

    // addresses: the innermost address, followed by return addresses. Addresses whose names are unknown, or not known
    // yet, are shown as "0x...". Addresses after the last one that points to code are dropped, because they are not
    // return addresses. The traced process controls the names, so show them with printable().
    std::vector<std::string> frames(const ImageId& image, std::span<const uint64_t> addresses);

    // Applies answers that arrive late, and replaces a helper that hangs. To be called at least once a second.
    void tick() { reader_.poll(); }

    void forget(const ImageId& image);

private:
    using Key = std::pair<uint64_t, bool>; // address, and whether it is the innermost address of a stack
    struct Image {
        const std::string* find(const Key& key) const;

        uint64_t generation = 0;            // StackAnswer::generation
        std::map<Key, std::string> lasting; // names kept until the generation changes
        // names kept for one second only: long names, and names of addresses at which a file may be mapped later
        std::map<Key, std::string> passing;
        std::set<Key> awaited; // addresses already sent to the helper without waiting for its answer
        std::chrono::steady_clock::time_point passing_since; // time at which `passing` and `awaited` were last cleared
    };

    void make_room();
    void ask_for_later(Image& image, const StackQuestion& question);
    bool apply(const Message& message);

    std::map<ImageId, Image> images_;
    Reader reader_;
};

} // namespace gpusnoop
