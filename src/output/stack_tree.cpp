// SPDX-License-Identifier: Apache-2.0
#include "output/stack_tree.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <limits>

namespace gpusnoop {
namespace {

uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a + b < a ? std::numeric_limits<uint64_t>::max() : a + b;
}

// At the end of a code point.
std::string_view cut_to(std::string_view name, size_t bytes)
{
    if (name.size() <= bytes)
        return name;
    while (bytes > 0 && (static_cast<unsigned char>(name[bytes]) & 0xc0) == 0x80)
        bytes--;
    return name.substr(0, bytes);
}

} // namespace

StackTree::StackTree(const Limits& limits) : limits_(limits)
{
    names_.emplace_back();
    nodes_.emplace_back();
}

uint32_t StackTree::name_number(std::string_view name)
{
    name = cut_to(name.empty() ? "?" : name, limits_.one_name);
    if (const auto found = numbers_.find(name); found != numbers_.end())
        return found->second;
    if (name_bytes_ + name.size() > limits_.name_bytes)
        return 0;
    name_bytes_ += name.size();
    const auto number = static_cast<uint32_t>(names_.size());
    numbers_.emplace(names_.emplace_back(name), number);
    return number;
}

void StackTree::add(std::span<const std::string> frames, uint64_t weight)
{
    uint32_t at = 0;
    for (const std::string& frame : frames) {
        const uint32_t name = name_number(frame);
        const auto found = children_.find(uint64_t{at} << 32 | name);
        if (found != children_.end()) {
            at = found->second;
            continue;
        }
        if (!name || nodes_.size() >= limits_.frames) {
            cut_++;
            break;
        }
        const auto next = static_cast<uint32_t>(nodes_.size());
        nodes_.push_back({.name = name, .parent = at, .depth = nodes_[at].depth + 1, .own = 0});
        children_.emplace(uint64_t{at} << 32 | name, next);
        at = next;
    }
    nodes_[at].own = sum_of(nodes_[at].own, weight);
}

void StackTree::clear_weights()
{
    for (Node& node : nodes_)
        node.own = 0;
}

// Whoever is called stands behind who calls.
std::vector<uint64_t> StackTree::totals() const
{
    std::vector<uint64_t> totals;
    for (const Node& node : nodes_)
        totals.push_back(node.own);
    for (size_t i = nodes_.size() - 1; i > 0; i--)
        totals[nodes_[i].parent] = sum_of(totals[nodes_[i].parent], totals[i]);
    return totals;
}

std::vector<uint32_t> StackTree::stack_of(uint32_t node) const
{
    std::vector<uint32_t> stack;
    for (; node; node = nodes_[node].parent)
        stack.push_back(node);
    return stack;
}

} // namespace gpusnoop
