// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/comparison.hpp"

#include "base/error.hpp"
#include "base/options.hpp"
#include "tools/cudadiff/figures.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gpusnoop::cudadiff {
namespace {

class Matching {
public:
    Matching(const Side& a, const Side& b, const WorkUnit& unit)
        : a_(a), b_(b), figures_a_(a, unit, "A"), figures_b_(b, unit, "B")
    {
        figures_a_.require_units();
        figures_b_.require_units();
    }

    Comparison all()
    {
        for (size_t number = 0; number < measures().size(); number++)
            if (measures()[number].kind == MeasureKind::ratio)
                compare_ratio(number);
            else
                compare_measure(number);
        add_costs();
        note_groups();
        auto by_cost = [](const Compared& one) { return std::pair(one.cost, weight(one.change)); };
        std::ranges::stable_sort(out_.rows, std::greater<>(), by_cost);
        std::ranges::stable_sort(out_.kernels, std::greater<>(),
                                 [](const Compared& one) { return std::fabs(one.change.difference); });
        return std::move(out_);
    }

private:
    // Second sort key, for rows of equal cost, such as rows without a measured time: the absolute logarithm of B/A. So
    // twice as much and half as much have the same weight.
    static double weight(const Change& change)
    {
        if (change.a <= 0 || change.b <= 0)
            return change.a > 0 || change.b > 0 ? 1e9 : 0;
        return std::fabs(std::log(change.b / change.a));
    }

    struct Pair {
        std::set<Series> a, b; // the measure's series in recordings A and B
        size_t source = 0;     // index in Measure::sources; all series are from this source
    };

    static std::set<Series> series_of(const Side& side, size_t measure, size_t source)
    {
        std::set<Series> all;
        for (const Series& one : side.series())
            if (one.measure == measure && one.source == source)
                all.insert(one);
        return all;
    }

    // Returns the series of both recordings from the first source (tool and key) that both have. If a tool was
    // recorded, but its tables lack a count, the count is 0. If they lack a time, a size, a split measure or an
    // optional count, the value is unknown.
    std::optional<Pair> pair_of(size_t number)
    {
        const Measure& measure = measures()[number];
        bool in_a = false, in_b = false;
        for (size_t source = 0; source < std::size(measure.sources); source++) {
            Pair pair{series_of(a_, number, source), series_of(b_, number, source), source};
            const std::string_view tool = measure.sources[source].tool;
            const bool is_zero = measure.kind == MeasureKind::count && measure.split.empty() && !measure.optional;
            if (tool.empty() || (pair.a.empty() && pair.b.empty()))
                continue;
            const bool a_has = !pair.a.empty() || (is_zero && a_.has_tool(tool));
            const bool b_has = !pair.b.empty() || (is_zero && b_.has_tool(tool));
            if (a_has && b_has)
                return pair;
            in_a |= a_has;
            in_b |= b_has;
        }
        if (in_a || in_b)
            out_.one_sided.push_back({number, in_a});
        return std::nullopt;
    }

    void compare_measure(size_t number)
    {
        const auto pair = pair_of(number);
        if (!pair)
            return;
        std::set<Series> both = pair->a;
        both.insert(pair->b.begin(), pair->b.end());
        for (const Series& series : both)
            add(series, change_between(figures_a_.values(series), figures_b_.values(series)));
    }

    void compare_ratio(size_t number)
    {
        const Measure& measure = measures()[number];
        const size_t part = measure_number(measure.part), whole = measure_number(measure.whole);
        for (const Series& one : a_.series()) {
            if (one.measure != whole || !b_.series().contains(one))
                continue;
            // Find the source of `part` that has the same tool as the source of `whole`. The two sources may have
            // different indexes in their measures.
            const std::string_view tool = measures()[whole].sources[one.source].tool;
            const auto& sources = measures()[part].sources;
            const auto* const source = std::ranges::find(sources, tool, &Source::tool);
            if (source == std::end(sources))
                continue;
            const Series of{one.group, part, static_cast<size_t>(source - std::begin(sources)), one.name};
            if (!a_.series().contains(of) || !b_.series().contains(of))
                continue;
            if (out_.rows.empty() || std::ranges::none_of(out_.rows, [&](const Compared& row) {
                    return row.measure == number && row.group == one.group && row.name == one.name;
                })) {
                Series as = one;
                as.measure = number;
                add(as, change_between(figures_a_.ratio(of, one), figures_b_.ratio(of, one)));
            }
        }
    }

    void add(const Series& series, const Change& change)
    {
        if (!change.a_count || !change.b_count)
            return;
        const std::string_view name = measures()[series.measure].name;
        Compared one{series.group, series.measure, series.name, change};
        if (name == "kernel")
            out_.kernels.push_back(std::move(one));
        else if (name == "kernel-grid")
            out_.kernel_grids.push_back(std::move(one));
        else
            out_.rows.push_back(std::move(one));
    }

    void note_groups()
    {
        std::set<std::string> in_a, in_b;
        for (const Series& one : a_.series())
            in_a.insert(one.group);
        for (const Series& one : b_.series())
            in_b.insert(one.group);
        std::ranges::set_difference(in_a, in_b, std::back_inserter(out_.groups_only_a));
        std::ranges::set_difference(in_b, in_a, std::back_inserter(out_.groups_only_b));
    }

    // Sets the cost of each row. Each measure belongs to a family of calls. The cost is the change of the time that the
    // row's group spent in calls of this family.
    void add_costs()
    {
        std::map<std::pair<std::string, Family>, double> costs;
        for (const Compared& row : out_.rows) {
            const Measure& measure = measures()[row.measure];
            if (measure.kind != MeasureKind::time || !measure.split.empty())
                continue;
            for (const Series& series : a_.series())
                if (series.measure == row.measure && series.group == row.group && b_.series().contains(series)) {
                    const Change change = change_between(figures_a_.share(series), figures_b_.share(series));
                    costs[{row.group, measure.family}] = change.significant ? std::fabs(change.difference) : 0;
                }
        }
        for (Compared& row : out_.rows) {
            const auto cost = costs.find({row.group, measures()[row.measure].family});
            row.cost = cost == costs.end() ? 0 : cost->second;
        }
    }

    const Side &a_, &b_;
    Figures figures_a_, figures_b_;
    Comparison out_;
};

} // namespace

WorkUnit WorkUnit::parse(std::string_view text)
{
    constexpr std::string_view kernel = "kernel:";
    if (text == "second")
        return {};
    if (text == "graph-launch")
        return {Kind::graph_launch, {}};
    if (text.starts_with(kernel) && text.size() > kernel.size())
        return {Kind::kernel, std::string(text.substr(kernel.size()))};
    throw UsageError(fmt::format("a unit of work (--per) must be second, graph-launch or kernel:NAME, not '{}'", text));
}

std::string WorkUnit::text() const
{
    return kind == Kind::second ? "second" : kind == Kind::graph_launch ? "graph launch" : "launch of " + kernel;
}

std::string Compared::full_name() const
{
    const Measure& of = measures()[measure];
    return name.empty() ? std::string(of.name) : fmt::format("{}:{}", of.name, name);
}

const Compared* Comparison::find(std::string_view measure, const std::string& group) const
{
    const auto found = std::ranges::find_if(
        rows, [&](const Compared& row) { return row.full_name() == measure && row.group == group; });
    return found == rows.end() ? nullptr : &*found;
}

Comparison compare(const Side& a, const Side& b, const WorkUnit& unit)
{
    Comparison both = Matching(a, b, unit).all();
    if (both.rows.empty() && both.kernels.empty())
        throw Error("the two recordings have no measure in common", "record both with the same tools and options");
    return both;
}

} // namespace gpusnoop::cudadiff
