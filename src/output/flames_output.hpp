// SPDX-License-Identifier: Apache-2.0
// Flame graphs: sums rows and lines by stack over a run, and writes the graphs when it ends.
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

// The stack of a row, outermost first: pod or cgroup if rows are grouped by them, process, thread, the frames below the
// row, and the kernel or kind of call.
std::vector<std::string> flame_stack(std::span<const Column> columns, const Row& row, const ExtraLines& below);

// Suffix of kernel frames, as in other tools.
inline constexpr std::string_view kernel_mark = "_[k]";

// Tree of frames with weights, from which all flame graph formats are written.
class StackTree {
public:
    struct Limits {
        size_t frames = 200'000;      // nodes of the tree
        size_t name_bytes = 32 << 20; // all names together
        size_t one_name = 4 << 10;    // bytes; longer names are truncated
    };
    struct Node {
        uint32_t name = 0;   // index for name()
        uint32_t parent = 0; // index in nodes(), lower than this one
        uint32_t depth = 0;
        uint64_t own = 0; // weight without callees
    };

    StackTree() : StackTree(Limits()) {}
    explicit StackTree(const Limits& limits);

    // frames: outermost first. If the tree is full, the weight is added to the frames that fit.
    void add(std::span<const std::string> frames, uint64_t weight);
    void clear_weights(); // keeps the frames

    std::span<const Node> nodes() const { return nodes_; } // the first is the root, which has no name
    std::string_view name(const Node& node) const { return names_[node.name]; }
    size_t names() const { return names_.size(); }
    std::string_view name(uint32_t number) const { return names_[number]; }
    std::vector<uint64_t> totals() const; // by node, with callees
    // Node indices from this node outwards, without the root.
    std::vector<uint32_t> stack_of(uint32_t node) const;

    uint64_t truncated() const { return truncated_; } // stacks that did not fit

private:
    uint32_t name_number(std::string_view name); // 0 if there is no room

    Limits limits_;
    std::deque<std::string> names_; // a deque, whose elements do not move
    std::unordered_map<std::string_view, uint32_t> numbers_;
    size_t name_bytes_ = 0;
    std::vector<Node> nodes_;
    std::unordered_map<uint64_t, uint32_t> children_; // by parent and name
    uint64_t truncated_ = 0;
};

// Throws UsageError for invalid combinations of options.
void check_flame_options(const Options& options);

// --folded: replaces the normal output.
std::unique_ptr<Output> make_folded_output(const Options& options);

// --svg, --pprof and --speedscope: writes files in addition to the normal output. Throws Error if one cannot be opened;
// check() throws if one could not be written.
SideOutput make_flames_output(const Options& options);

} // namespace gpusnoop
