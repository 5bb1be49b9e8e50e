// SPDX-License-Identifier: Apache-2.0
// cudadiff: compares two recordings.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "run/command_line.hpp"
#include "tools/cudadiff/comparison.hpp"
#include "tools/cudadiff/threshold.hpp"
#include "tools/cudadiff/words.hpp"
#include "tools/tools.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace gpusnoop::cudadiff {
namespace {

constexpr std::string_view tool_name = "cudadiff";
constexpr std::string_view about =
    "Compares two recordings of the other tools: what changed, by how much, and is it significant.";
constexpr std::string_view examples =
    "  cudalaunch -l --record before.json 1   # record until Ctrl-C; repeat after the change\n"
    "  cudadiff before.json after.json        # what changed\n"
    "  cudadiff a.json,a2.json.gz b.json      # several recordings on one side\n"
    "  cudadiff --per graph-launch A B        # per unit of work, if the amounts of work differ\n"
    "  cudadiff --per kernel:adam A B         # per launch of that kernel\n"
    "  cudadiff --by process A B              # compare each process, by its name\n"
    "  cudadiff --fail-if 'launches>+10%' A B # for CI: exit 3 if launches grew by more than 10%\n"
    "  cudadiff --json A B                    # one JSON object per measure\n";

struct Settings {
    std::vector<std::string> a, b; // paths of the recordings
    Group by = Group::whole;
    WorkUnit unit;
    std::vector<Threshold> thresholds;
    size_t rows = 20;
    bool json = false;
};

// Splits at commas, unless the whole text is the name of a file.
std::vector<std::string> files_in(const std::string& text)
{
    std::error_code ignored;
    std::vector<std::string> files;
    if (std::filesystem::exists(text, ignored))
        return {text};
    for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
        end = text.find(',', at);
        files.push_back(text.substr(at, end - at));
    }
    return files;
}

Group group_named(std::string_view text)
{
    constexpr std::pair<std::string_view, Group> all[] = {
        {"whole", Group::whole}, {"process", Group::process}, {"pod", Group::pod}};
    for (const auto& [name, group] : all)
        if (text == name)
            return group;
    throw UsageError(fmt::format("--by takes whole, process or pod, not '{}'", text));
}

Settings parse(int argc, char** argv)
{
    Settings s;
    CommandLine line(tool_name, about, examples);
    line.argument("A", "the recording before the change, or several (A,A2)",
                  [&s](const std::string& text) { s.a = files_in(text); });
    line.argument("B", "the recording after the change, or several",
                  [&s](const std::string& text) { s.b = files_in(text); });
    line.text("--by", "WHAT", "group rows by whole, process or pod (whole)",
              [&s](const std::string& text) { s.by = group_named(text); });
    line.text("--per", "UNIT", "divide by this unit of work: second, graph-launch or kernel:NAME (second)",
              [&s](const std::string& text) { s.unit = WorkUnit::parse(text); });
    line.texts("--fail-if", "CHANGE", "exit 3 if this changed, for example 'launches>+10%'; may be repeated",
               [&s](const std::string& text) { s.thresholds.push_back(Threshold::parse(text)); });
    line.text("-r,--rows", "ROWS", "maximum number of rows per table (20; 0: all)", [&s](const std::string& text) {
        s.rows = number_argument<uint32_t>("a number of rows (-r)", text, 0, 1'000'000);
    });
    line.flag("-j,--json", "one JSON object per line instead of text", s.json);
    line.parse(argc, argv);
    if (s.a.empty() || s.b.empty())
        throw UsageError("name two recordings: cudadiff BEFORE AFTER");
    return s;
}

template<class Texts>
Cell text_of(const Texts& texts)
{
    return texts.empty() ? Cell() : Cell(joined(texts, ","));
}

// Prints a table with one row per side (A and B): its recording files, hosts, tools, and lost or unreadable lines.
void print_sides(Output& output, const Settings& s, const Side& a, const Side& b, uint64_t now_ns)
{
    const Column columns[] = {{"", "of", Unit::text, 8, false},
                              {"", "side", Unit::text, 4},
                              {"RECORDING", "files", Unit::text, 24},
                              {"HOST", "hosts", Unit::text, 12},
                              {"TOOL", "tools", Unit::text, 12},
                              {"", "versions", Unit::text, 8, false},
                              {"", "command_lines", Unit::text, 8, false},
                              {"RUNS", "runs", Unit::count, 4},
                              {"SECONDS", "seconds", Unit::rate, 7},
                              {"LOST", "lost", Unit::count, 6},
                              {"", "estimated_rows", Unit::count, 8, false},
                              {"", "lines", Unit::count, 8, false},
                              {"", "lossy_lines", Unit::count, 8, false},
                              {"", "events", Unit::count, 8, false},
                              {"", "not_json", Unit::count, 8, false},
                              {"", "damaged_bytes", Unit::count, 8, false},
                              {"", "long_lines", Unit::count, 8, false},
                              {"", "cut_off", Unit::count, 8, false}};
    output.begin_table(columns, now_ns, 0);
    for (const auto& [letter, side, files] : {std::tuple("A", &a, &s.a), std::tuple("B", &b, &s.b)}) {
        const Facts& facts = side->facts();
        output.row(columns,
                   {std::string("side"), std::string(letter), joined(*files, ","), text_of(facts.hosts),
                    text_of(facts.tools), text_of(facts.versions), text_of(facts.commands), uint64_t{facts.runs},
                    facts.seconds, facts.lost, facts.estimated, facts.lines, facts.lossy, facts.events,
                    facts.unread.not_json, facts.unread.damage.bytes, facts.unread.damage.long_lines,
                    uint64_t{facts.unread.damage.cut_off}},
                   {});
    }
}

// Warns of losses and limits that make values less reliable.
void warn_of_side(std::string_view letter, const Facts& facts)
{
    const std::pair<double, std::string_view> all[] = {
        {static_cast<double>(facts.lost), "calls or lines were lost during the recording"},
        {static_cast<double>(facts.estimated), "rows are estimates (--max-overhead)"},
        {facts.unknown_graphs, "launches of graphs whose kernels are not known"},
        {static_cast<double>(facts.lossy), "lines of -e are not compared: their run lost some lines"},
        {static_cast<double>(facts.events), "lines of -e are not compared: this is not supported for their tool"},
        {static_cast<double>(facts.no_tool), "rows are not compared: the first line of their run is missing"},
        {static_cast<double>(facts.dropped_rows), "rows are not compared: there are too many kernels"},
        {static_cast<double>(facts.unread.not_json), "lines are not JSON output of a tool"},
        {static_cast<double>(facts.unread.other_schema), "lines have an unknown schema"},
        {static_cast<double>(facts.unread.damage.bytes), "bytes are damaged"},
        {static_cast<double>(facts.unread.damage.long_lines), "lines are too long"},
    };
    for (const auto& [count, text] : all)
        if (count > 0)
            warn(fmt::format("{}: {:.0f} {}", letter, count, text));
    if (facts.unread.damage.cut_off)
        warn(fmt::format("{}: the recording is truncated", letter));
}

void warn_of_differences(const Settings& s, const Facts& a, const Facts& b, const Comparison& all)
{
    if (a.hosts != b.hosts)
        warn("the recordings are from different hosts");
    if (a.versions != b.versions)
        warn("the recordings are from different versions of the tools");
    std::set<std::string> one_sided;
    for (const OneSided& one : all.one_sided)
        one_sided.insert(measure_text(one));
    if (!one_sided.empty())
        warn(fmt::format("measures that are not compared, because only one recording has them: {}",
                         joined(one_sided, ", ")));
    for (const auto& [letter, groups] : {std::pair("A", &all.groups_only_a), std::pair("B", &all.groups_only_b)})
        if (s.by != Group::whole && !groups->empty())
            warn(fmt::format("only in {}: {}", letter, joined(*groups, ", ")));
    const bool enough = std::ranges::any_of(all.rows, [](const Compared& row) { return row.change.enough; });
    if (!enough)
        warn("too few intervals for any result: record for longer, or with a short interval, for example: "
             "cudalaunch --record FILE 1");
}

// Aligns numbers to the right, so that their last digits line up.
Cell right_aligned(const std::string& text, size_t width)
{
    return fmt::format("{:>{}}", text, width);
}

constexpr size_t figure_width = 12;

std::vector<Column> columns_of(const Settings& s, std::string_view header, std::string_view key)
{
    const std::string_view group = s.by == Group::process ? "PROCESS" : "POD";
    std::vector<Column> columns{{"", "of", Unit::text, 8, false},
                                {group, "group", Unit::text, 15, s.by != Group::whole},
                                {header, "", Unit::text, 40},
                                {"", key, Unit::text},
                                {"           A", "", Unit::text, figure_width},
                                {"           B", "", Unit::text, figure_width},
                                {"      CHANGE", "", Unit::text, figure_width},
                                {"95% INTERVAL", "", Unit::text, 20},
                                {"N", "", Unit::text, 5},
                                {"", "unit", Unit::text},
                                {"", "a", Unit::rate},
                                {"", "b", Unit::rate},
                                {"", "change_percent", Unit::percent},
                                {"", "low_percent", Unit::percent},
                                {"", "high_percent", Unit::percent},
                                {"", "shown", Unit::count},
                                {"", "enough", Unit::count},
                                {"", "a_blocks", Unit::count},
                                {"", "b_blocks", Unit::count},
                                {"", "cost_percent", Unit::percent}};
    for (Column& column : columns)
        column.in_text &= !column.header.empty();
    for (Column& column : columns)
        column.in_json = !column.key.empty();
    return columns;
}

Cell percent_cell(std::optional<double> share)
{
    return share ? Cell(*share * 100) : Cell();
}

void print_rows(Output& output, const Settings& s, const std::vector<Compared>& rows, std::span<const Column> columns,
                std::string_view of, uint64_t now_ns)
{
    output.begin_table(columns, now_ns, 0);
    size_t number = 0;
    for (const Compared& row : rows) {
        const Change& c = row.change;
        Output* const place = output.place_of_row(number, s.rows);
        if (!place || (c.a == 0 && c.b == 0 && !c.significant))
            continue;
        number++;
        const Measure& measure = measures()[row.measure];
        const bool of_kernel = of == "kernel";
        const double scale =
            measure.kind == MeasureKind::time && s.unit.kind == WorkUnit::Kind::second ? 100 : 1; // a share in percent
        const std::string_view unit = measure.kind != MeasureKind::time       ? ""
                                      : s.unit.kind == WorkUnit::Kind::second ? "percent"
                                                                              : "ns";
        place->row(columns,
                   {std::string(of),
                    row.group.empty() ? Cell() : Cell(row.group),
                    of_kernel ? row.name : measure_text(row, s.unit),
                    of_kernel ? row.name : row.full_name(),
                    right_aligned(figure_text(measure, s.unit, c.a), figure_width),
                    right_aligned(figure_text(measure, s.unit, c.b), figure_width),
                    right_aligned(change_text(c), figure_width),
                    interval_text(c),
                    fmt::format("{}+{}", c.a_count, c.b_count),
                    unit.empty() ? Cell() : Cell(std::string(unit)),
                    c.a * scale,
                    c.b * scale,
                    percent_cell(c.share()),
                    c.enough ? percent_cell(c.relative_to_a(c.low)) : Cell(),
                    c.enough ? percent_cell(c.relative_to_a(c.high)) : Cell(),
                    uint64_t{c.significant},
                    uint64_t{c.enough},
                    uint64_t{c.a_count},
                    uint64_t{c.b_count},
                    row.cost * 100},
                   {});
    }
}

void print(Output& output, const Settings& s, const Side& a, const Side& b, const Comparison& all)
{
    const uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    const std::string sentence = summary(all, s.unit);
    print_sides(output, s, a, b, now_ns);
    print_rows(output, s, all.rows, columns_of(s, "MEASURE", "measure"), "measure", now_ns);
    const std::string launches = fmt::format("KERNEL, launches per {}", s.unit.text());
    print_rows(output, s, all.kernels, columns_of(s, launches, "kernel"), "kernel", now_ns);
    output.end_report({}, now_ns); // ends the tables, to separate the sentence from them
    output.end_report([&] { return sentence; }, now_ns);
    if (Output* const programs = output.for_programs()) {
        const Column columns[] = {{"", "of", Unit::text}, {"", "unit", Unit::text}, {"", "summary", Unit::text}};
        programs->begin_table(columns, now_ns, 0);
        programs->row(columns, {std::string("summary"), s.unit.text(), sentence}, {});
    }
    output.flush();
}

int run(int argc, char** argv)
{
    constexpr int exit_failed_condition = 3;
    const Settings s = parse(argc, argv);
    Side a(s.by), b(s.by);
    a.read(s.a);
    b.read(s.b);
    const Comparison all = compare(a, b, s.unit);
    warn_of_side("A", a.facts());
    warn_of_side("B", b.facts());
    warn_of_differences(s, a.facts(), b.facts(), all);
    const std::unique_ptr<Output> output = s.json ? make_json_output() : make_text_output(false);
    print(*output, s, a, b, all);
    bool failed = false;
    for (const Threshold& threshold : s.thresholds)
        for (const std::string& sentence : threshold.failures(all)) {
            warn(sentence);
            failed = true;
        }
    return failed ? exit_failed_condition : 0;
}

} // namespace
} // namespace gpusnoop::cudadiff

int gpusnoop::run_cudadiff(int argc, char** argv)
{
    return cudadiff::run(argc, argv);
}
