// SPDX-License-Identifier: Apache-2.0
// Columns of -U: one row per stack where threads block.
#include "tools/cudagap/columns.hpp"
#include "tools/cudagap/parts.hpp"

namespace gpusnoop::cudagap {
namespace {

using K = BlockKey;
using G = BlockGroup;
using C = Context;

constexpr Field<C, K, G> fields[] = {
    Field<C, K, G>{{"REASON", "reason", Unit::text, 7},
                   always<C>,
                   [](const K& k, const G&, const C&) {
                       const std::string_view key = time_part_names[k.part].key;
                       return Cell(std::string(key.substr(0, key.rfind('_'))));
                   },
                   "Reason for blocking, as explained under `DESCRIPTION`."}
        .in_text([](const K& k, const G&, const C&) {
            const std::string_view header = time_part_names[k.part].header;
            return Cell(std::string(header.substr(0, header.size() - 1)));
        }),
    {{"TIME(s)", "blocked_ns", Unit::seconds, 9},
     always<C>,
     count_of<&G::ns>,
     "Blocked time of all threads of the row; in JSON, in nanoseconds. A blocked period ends when the thread becomes "
     "runnable, so it does not include the wait for a CPU after that."},
    {{"TIMES", "blocks", Unit::count, 7}, always<C>, count_of<&G::times>, "Number of times that the threads blocked."},
    {{"AVG(us)", "average_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return g.times ? Cell(g.ns / g.times) : Cell(); },
     "Average duration of a blocked period."},
};

} // namespace

std::span<const Field<Context, BlockKey, BlockGroup>> stack_fields()
{
    return fields;
}

} // namespace gpusnoop::cudagap
