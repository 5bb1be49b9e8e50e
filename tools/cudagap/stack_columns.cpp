// SPDX-License-Identifier: Apache-2.0
// Where threads block: a row for each stack.
#include "tools/cudagap/columns.hpp"
#include "tools/cudagap/parts.hpp"

namespace gpusnoop::cudagap {
namespace {

using K = BlockKey;
using G = BlockGroup;
using C = Context;

const Field<C, K, G> fields[] = {
    {{"REASON", "", Unit::text, 7},
     always<C>,
     [](const K& k, const G&, const C&) {
         const std::string_view header = time_part_names[k.part].header;
         return Cell(std::string(header.substr(0, header.size() - 1)));
     }},
    {{"", "reason", Unit::text},
     json_only<C>,
     [](const K& k, const G&, const C&) {
         const std::string_view key = time_part_names[k.part].key;
         return Cell(std::string(key.substr(0, key.rfind('_'))));
     }},
    {{"TIME(s)", "blocked_ns", Unit::seconds, 9}, always<C>, [](const K&, const G& g, const C&) { return Cell(g.ns); }},
    {{"TIMES", "blocks", Unit::count, 7}, always<C>, [](const K&, const G& g, const C&) { return Cell(g.times); }},
    {{"AVG(us)", "average_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return g.times ? Cell(g.ns / g.times) : Cell(); }},
};

} // namespace

std::vector<Column> columns_of_stacks()
{
    std::vector<Column> all;
    for (const auto& field : fields)
        all.push_back(field.column);
    return all;
}

void check_stack_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort, {});
}

void print_stacks(Output& output, const std::map<BlockKey, BlockGroup>& groups, const Context& context,
                  uint64_t wall_ns, const FramesOf<BlockKey, BlockGroup>& frames)
{
    print_table<K, G, C>(
        output, fields, groups, context, wall_ns, context.settings.sort,
        [](const G& group) { return static_cast<double>(group.ns); }, frames);
}

} // namespace gpusnoop::cudagap
