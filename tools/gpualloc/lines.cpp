// SPDX-License-Identifier: Apache-2.0
#include "tools/gpualloc/lines.hpp"

#include "rows/who.hpp"

#include <algorithm>
#include <span>

namespace gpusnoop::gpualloc {
namespace {

constexpr size_t stacks_of_exit = 20;

struct LeakRowKey {
    WhoKey who;
    LeakKey leak;
    auto operator<=>(const LeakRowKey&) const = default;
};

struct LeakRow {
    WhoSeen who;
    Leak leak;
};

struct LeakContext {
    const Options& options;
    Processes& processes;
    double seconds;
    WhoView view;

    const WhoView& who() const { return view; }
};

const Field<LeakContext, LeakRowKey, LeakRow> leak_fields[] = {
    {{"KIND", "kind", Unit::text, 10},
     always<LeakContext>,
     [](const LeakRowKey& k, const LeakRow&, const LeakContext&) {
         return Cell(std::string(holding_name(k.leak.holding)));
     },
     "Kind of the memory, see `DESCRIPTION`."},
    {level({"BYTES", "bytes", Unit::bytes, 7}), always<LeakContext>,
     [](const LeakRowKey&, const LeakRow& g, const LeakContext&) {
         return Cell(static_cast<uint64_t>(g.leak.amount.bytes));
     },
     "Bytes not freed."},
    {level({"COUNT", "allocations", Unit::count, 7}), always<LeakContext>,
     [](const LeakRowKey&, const LeakRow& g, const LeakContext&) {
         return Cell(static_cast<uint64_t>(g.leak.amount.count));
     },
     "Number of allocations."},
    {{"OLDEST(s)", "oldest_ns", Unit::seconds, 12},
     always<LeakContext>,
     [](const LeakRowKey&, const LeakRow& g, const LeakContext&) { return Cell(g.leak.oldest_ns); },
     "Age of the oldest allocation, in JSON in nanoseconds."},
};

struct ExitLine : ProcessLine {
    std::string_view event;
    Cell kind;
    const Amount& amount;
};

const ProcessField<ExitLine> exit_fields[] = {
    {{"", "event", Unit::text},
     in_any_run,
     [](const ExitLine& l, const AnyRun&) { return Cell(std::string(l.event)); },
     "`exit` on the line of the process, `held` on the lines of its stacks."},
    {{"KIND", "kind", Unit::text, 10},
     in_any_run,
     [](const ExitLine& l, const AnyRun&) { return l.kind; },
     "Kind of memory of the stack's allocations. On the line of the process, it is `all`."},
    {{"HELD", "held_bytes", Unit::bytes, 7},
     in_any_run,
     [](const ExitLine& l, const AnyRun&) { return Cell(l.amount.bytes_held()); },
     "Bytes of memory of every kind, including host memory."},
    {{"COUNT", "held_allocations", Unit::count, 7},
     in_any_run,
     [](const ExitLine& l, const AnyRun&) { return Cell(l.amount.count_held()); },
     "Number of allocations."},
};

} // namespace

void print_leaks(Output& output, const std::map<LeakKey, Leak>& leaks, const Options& options, Processes& processes,
                 uint64_t wall_ns, double seconds, const StackOf& stack_of)
{
    std::map<LeakRowKey, LeakRow> rows;
    LeakContext context{options, processes, seconds, {}};
    context.view.pid = true;
    for (const auto& [key, leak] : leaks) {
        LeakRowKey row{{}, key};
        row.who.set_process(key.image, processes);
        rows[row].leak = leak;
        rows[row].who.add(key.image, processes.owner(key.image, leak.cgroup));
    }
    print_table<LeakRowKey, LeakRow, LeakContext>(
        output, leak_fields, rows, context, wall_ns, "bytes",
        [](const LeakRow& row) { return static_cast<double>(row.leak.amount.bytes); },
        [&](const LeakRowKey& key, const LeakRow&) { return stack_of(key.leak); });
}

void print_exit(Output& output, const ImageId& image, const Holdings& holdings, Processes& processes, uint64_t wall_ns,
                const StackOf& stack_of)
{
    Amount total;
    std::map<LeakKey, Amount> by_stack;
    for (const auto& [row, amount] : holdings.now()) {
        if (ImageId(row.image) != image || !is_memory(row.memory.holding))
            continue;
        total.add(amount.count, amount.bytes);
        by_stack[{image, row.memory.holding, row.stack, row.caller}].add(amount.count, amount.bytes);
    }
    auto line = [&](std::string_view event, const Cell& kind, const Amount& amount, const Frames& frames) {
        print_process_line<ExitLine>(output, exit_fields, {{image, processes, wall_ns}, event, kind, amount}, frames);
    };
    line("exit", std::string("all"), total, {});
    std::vector<std::pair<LeakKey, Amount>> largest(by_stack.begin(), by_stack.end());
    std::ranges::sort(largest, std::greater<>(), [](const auto& item) { return item.second.bytes; });
    for (const auto& [key, amount] : std::span(largest).first(std::min(largest.size(), stacks_of_exit)))
        line("held", std::string(holding_name(key.holding)), amount, stack_of(key));
}

std::vector<Column> leak_columns()
{
    std::vector<Column> all;
    for (const auto* field : all_fields<LeakRowKey, LeakRow, LeakContext>(leak_fields))
        all.push_back(documented(*field));
    return all;
}

std::vector<Column> exit_columns()
{
    return process_line_columns<ExitLine>(exit_fields);
}

} // namespace gpusnoop::gpualloc
