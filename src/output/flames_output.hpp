// SPDX-License-Identifier: Apache-2.0
// Flame graph output: sums rows or event lines by stack during a run, and writes the graphs when the run ends.
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

// Frames of a row in the flame graph, outermost first: owners (such as pod or cgroup) if the table shows them, process,
// thread, the stack printed below the row, and the kernel or kind of call.
std::vector<std::string> flame_stack(std::span<const Column> columns, const Row& row, const ExtraLines& below);

// Suffix that marks frames in the kernel, as in other flame graph tools.
inline constexpr std::string_view kernel_mark = "_[k]";

// Tree of frames with weights; all flame graph formats are written from it.
class StackTree {
public:
    struct Limits {
        size_t frames = 200'000;      // nodes of the tree
        size_t name_bytes = 32 << 20; // total size of all names
        size_t one_name = 4 << 10;    // bytes; longer names are truncated
    };
    struct Node {
        uint32_t name = 0;   // number of the name, for name()
        uint32_t parent = 0; // index in nodes(), lower than the node's own index
        uint32_t depth = 0;
        uint64_t own = 0; // weight of the frame itself, without its callees
    };

    StackTree() : StackTree(Limits()) {}
    explicit StackTree(const Limits& limits);

    // frames: outermost first. If the tree has no room for all of them, the weight is added to the innermost frame that
    // fits.
    void add(std::span<const std::string> frames, uint64_t weight);
    void clear_weights(); // sets all weights to 0, but keeps the frames

    std::span<const Node> nodes() const { return nodes_; } // the first is the root, which has no name
    std::string_view name(const Node& node) const { return names_[node.name]; }
    size_t names() const { return names_.size(); }
    std::string_view name(uint32_t number) const { return names_[number]; }
    std::vector<uint64_t> totals() const; // weights by node, including callees
    // Indices of the node and its callers up to, but without, the root.
    std::vector<uint32_t> stack_of(uint32_t node) const;

    uint64_t truncated() const { return truncated_; } // number of stacks that did not fit into the tree

private:
    uint32_t name_number(std::string_view name); // adds the name if it is new; returns 0 if there is no room

    Limits limits_;
    std::deque<std::string> names_; // a deque, because its elements do not move
    std::unordered_map<std::string_view, uint32_t> numbers_;
    size_t name_bytes_ = 0;
    std::vector<Node> nodes_;
    std::unordered_map<uint64_t, uint32_t> children_; // node indices, by parent and name
    uint64_t truncated_ = 0;
};

// Throws UsageError for invalid combinations of options.
void check_flame_options(const Options& options);

// Output for --folded, which replaces the normal output.
std::unique_ptr<Output> make_folded_output(const Options& options);

// Output for --svg, --pprof and --speedscope, which writes files in addition to the normal output. Throws Error if a
// file cannot be opened. If a file cannot be written later, the output's check() throws Error.
SideOutput make_flames_output(const Options& options);

} // namespace gpusnoop
