// SPDX-License-Identifier: Apache-2.0
// Rows and lines with frames, added up over a run and written as flame graphs when it ends.
#pragma once

#include "base/options.hpp"
#include "output/side_outputs.hpp"
#include "rows/output.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusnoop {

// A row with the frames below it, as a stack: whose it is, where in the program it happened, and what happened there.

// The outermost first: pod or cgroup where rows are by those, process, thread, frames, kernel or kind of call.
std::vector<std::string> flame_stack(std::span<const Column> columns, const Row& row, const ExtraLines& below);

// Of the kernel, as other tools mark such frames.
inline constexpr std::string_view kernel_mark = "_[k]";

// What has been added up by stack: a tree of frames, from which all forms of flame graphs are written.
class StackTree {
public:
    struct Limits {
        size_t frames = 200'000;      // in all places of the tree
        size_t name_bytes = 32 << 20; // of all names
        size_t one_name = 4 << 10;    // bytes; the rest of a longer one is cut off
    };
    struct Node {
        uint32_t name = 0;   // of names()
        uint32_t parent = 0; // of nodes(): before this one
        uint32_t depth = 0;
        uint64_t own = 0; // without those that it calls
    };

    StackTree() : StackTree(Limits()) {}
    explicit StackTree(const Limits& limits);

    // frames: the outermost first. Where there is no room for all of them, it counts for those there is room for.
    void add(std::span<const std::string> frames, uint64_t weight);
    // What was added is of another time.
    void clear_weights();

    std::span<const Node> nodes() const { return nodes_; } // the first one is the root, which has no name
    std::string_view name(const Node& node) const { return names_[node.name]; }
    size_t names() const { return names_.size(); }
    std::string_view name(uint32_t number) const { return names_[number]; }
    std::vector<uint64_t> totals() const; // of each node, with those that it calls
    // Of a node, the innermost first, without the root.
    std::vector<uint32_t> stack_of(uint32_t node) const;

    uint64_t cut() const { return cut_; } // times that there was no room

private:
    uint32_t name_number(std::string_view name); // 0 where there is no room

    Limits limits_;
    std::deque<std::string> names_; // which stay where they are
    std::unordered_map<std::string_view, uint32_t> numbers_;
    size_t name_bytes_ = 0;
    std::vector<Node> nodes_;
    std::unordered_map<uint64_t, uint32_t> children_; // by parent and name
    uint64_t cut_ = 0;
};

// Throws UsageError where it makes no sense.
void check_flame_options(const Options& options);

// In place of what is shown, for --folded.
std::unique_ptr<Output> make_folded_output(const Options& options);

// In files, beside what is shown. Throws Error where one cannot be written; check() does where one could not.
SideOutput make_flames_output(const Options& options);

} // namespace gpusnoop
