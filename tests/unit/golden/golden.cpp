// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

#include "../output/captured.hpp"
#include "bpf/shared/histogram.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <unistd.h>

namespace gpusnoop::golden {
namespace {

using captured::json;

// Builds a record of a cgroup path. The BPF programs send directory names from the innermost outwards.
cgroup_path path_of(std::initializer_list<std::string_view> names)
{
    cgroup_path path{};
    path.complete = 1;
    for (const std::string_view name : names) {
        std::ranges::copy(name, path.names + path.bytes);
        path.bytes += static_cast<uint32_t>(name.size()) + 1;
    }
    return path;
}

void add_process(Processes& processes, const image& who, std::string_view comm, const cgroup_path& path)
{
    process_record record{};
    record.image = who;
    record.start_ns = uint64_t{who.pid} * 1000;
    record.seen_ns = record.start_ns + 500;
    record.ns_pid = who.pid % 100;
    std::ranges::copy(comm, record.comm);
    record.cgroups = {who.pid, 0};
    record.v2 = path;
    processes.learn(record);
    processes.learn_thread(who, who.pid + 10, std::to_array("pt_autograd_0\0\0"), false); // this thread makes the calls
                                                                                          // of calls_of()
}

std::vector<std::string> list_of(std::istream& stream)
{
    std::string word;
    stream >> word;
    std::istringstream list(word);
    std::vector<std::string> names;
    for (std::string name; std::getline(list, name, ',');)
        names.push_back(name);
    return names;
}

std::string contents(const std::filesystem::path& path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string difference(const std::filesystem::path& want, const std::string& got)
{
    const auto shown = std::filesystem::temp_directory_path() / fmt::format("gpusnoop-golden-{}", getpid());
    std::ofstream(shown) << got;
    const std::string command = fmt::format("diff -u '{}' '{}'", want.string(), shown.string());
    const std::unique_ptr<FILE, int (*)(FILE*)> diff(popen(command.c_str(), "r"), pclose);
    std::string text;
    for (char part[4096]; size_t n = fread(part, 1, sizeof(part), diff.get());)
        text.append(part, n);
    std::filesystem::remove(shown);
    return text;
}

} // namespace

TestProcesses::TestProcesses() : Processes(-1, "/nowhere")
{
    add_process(*this, trainer, "trainer",
                path_of({"cri-containerd-3f2a91c07bd84e6655d0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abc.scope",
                         "kubepods-burstable-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice", "kubepods-burstable.slice",
                         "kubepods.slice"}));
    add_process(*this, solver, "solver",
                path_of({"task_0", "user", "step_0", "job_77", "slurmstepd.scope", "system.slice"}));
    add_process(*this, server, "server", path_of({"triton.service", "user-1000.slice", "user.slice"}));
}

void parse_words(const std::string& words, Options& options, CallSettings& settings,
                 const std::function<bool(std::string_view word, std::istream& more)>& parse_option)
{
    const std::map<std::string_view, bool*> flags = {
        {"-T", &options.timestamps},  {"-X", &options.extra_columns}, {"-x", &options.failed_only},
        {"-U", &options.user_stacks}, {"-m", &options.milliseconds},  {"-N", &options.nanoseconds},
        {"-P", &options.per_process}, {"-L", &options.per_thread},    {"-l", &settings.latency}};
    std::istringstream stream(words);
    for (std::string word; stream >> word;) {
        if (const auto flag = flags.find(word); flag != flags.end())
            *flag->second = true;
        else if (word == "-r")
            stream >> options.rows;
        else if (word == "-s")
            stream >> settings.sort;
        else if (word == "-H")
            stream >> settings.measure;
        else if (word == "--api")
            stream >> settings.api;
        else if (word == "--by")
            stream >> settings.by.emplace();
        else if (word == "--columns")
            for (const auto& name : list_of(stream))
                options.columns.push_back(name);
        else
            REQUIRE(parse_option(word, stream));
    }
    settings.apply(options);
}

std::span<const Probe> all_probes()
{
    static const std::vector<Probe> all = [] {
        std::vector<probe_kind> kinds;
        for (int kind = KIND_NONE + 1; kind < KINDS; kind++)
            kinds.push_back(static_cast<probe_kind>(kind));
        std::vector<Probe> probes = gpusnoop::probes(Library::driver, kinds);
        std::ranges::move(gpusnoop::probes(Library::runtime, kinds), std::back_inserter(probes));
        return probes;
    }();
    return all;
}

CallDelta calls_of(const image& who, uint8_t kind, std::string_view symbol, uint64_t n, uint64_t ns_each)
{
    CallDelta call;
    call.key.image = who;
    call.key.kind = kind;
    call.key.device = static_cast<uint8_t>(who.pid % 2);
    call.key.tid = who.pid + 10;
    call.key.stack = static_cast<int32_t>(who.pid % 10);
    call.key.caller = 0x401000;
    call.key.cgroups = {who.pid, 0};
    call[CALL_COUNT] = n;
    call[CALL_TOTAL_NS] = n * ns_each;
    call[CALL_MAX_NS] = ns_each + ns_each / 16;
    if (symbol.empty())
        return call;
    const auto probe = std::ranges::find(all_probes(), symbol, &Probe::symbol);
    REQUIRE(probe != all_probes().end());
    call.key.function = static_cast<uint16_t>(probe - all_probes().begin() + 1);
    call.key.layer = probe->row.layer;
    return call;
}

namespace {

std::optional<CallDelta> as_measured(CallDelta call, const Options& options, const CallSettings& settings,
                                     Measures measures)
{
    call_key& key = call.key;
    if ((key.layer == LAYER_DRIVER && !settings.driver) || (key.layer == LAYER_RUNTIME && !settings.runtime) ||
        (options.failed_only && !key.result))
        return std::nullopt;
    const uint64_t unit = settings.histogram() ? options.unit_ns() : 1;
    key.duration = static_cast<uint16_t>(histogram_bucket(call[CALL_TOTAL_NS] / call[CALL_COUNT] / unit));
    if (!measures.durations) {
        key.duration = BUCKET_NONE;
        call[CALL_TOTAL_NS] = call[CALL_MAX_NS] = 0;
    }
    if (!measures.results)
        key.result = 0;
    return call;
}

} // namespace

std::vector<CallDelta> as_measured(const std::vector<CallDelta>& calls, const Options& options,
                                   const CallSettings& settings, Measures measures)
{
    std::vector<CallDelta> counted;
    for (const CallDelta& call : calls)
        if (const auto one = as_measured(call, options, settings, measures))
            counted.push_back(*one);
    return counted;
}

std::string written(const Options& options, const std::function<void(Output&)>& print)
{
    if (!options.json)
        return captured::written(make_text_output(options.timestamps), print).out;
    // Removes the time of day of events, because it is computed from the current time and differs between runs.
    static const std::regex of_call(R"re(("type":"event",)"time":"[^"]*",("time_ns"))re");
    return std::regex_replace(captured::written(make_json_output(), print).out, of_call, "$1$2");
}

void compare(const std::string& name, const std::string& shown)
{
    const auto file = std::filesystem::path(__FILE__).parent_path() / "golden" / fmt::format("{}.txt", name);
    const char* mode = std::getenv("GPUSNOOP_GOLDEN");
    if (mode && std::string_view(mode) == "write") {
        REQUIRE(std::ofstream(file) << shown);
        WARN(file.string() << " was rewritten");
    } else if (contents(file) != shown) {
        FAIL(difference(file, shown) << "If this change is intended, run at the root of the sources: "
                                        "GPUSNOOP_GOLDEN=write build/unit/unit-tests '[golden]'");
    }
}

namespace {

// Returns the first n lines of the text, so that golden files and differences stay short. The section on totals checks
// the remaining rows.
std::string first_lines(const std::string& text, size_t n)
{
    size_t end = 0;
    for (; n && end < text.size(); n--)
        end = text.find('\n', end) + 1;
    const auto more = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
    return text.substr(0, end) + (more ? fmt::format("... and {} more\n", more) : "");
}

// Returns true if the options only affect text tables, not JSON.
bool is_text_only(const std::string& words)
{
    static const std::regex options("(^|.* )(-T|-r|-X|-s|--columns|--names)( .*|$)");
    return std::regex_match(words, options);
}

std::string shown(const Subject& tool, const std::string& words)
{
    std::string text =
        fmt::format("=== {}{}{}\n{}", tool.name, words.empty() ? "" : " ", words, tool.run(words, false));
    if (!is_text_only(words))
        text += "--- JSON\n" + first_lines(tool.run(words, true), 3);
    return text;
}

std::vector<json> records(const Subject& tool, const std::string& more)
{
    std::vector<json> all;
    std::istringstream text(tool.run(tool.full_table + more, true));
    for (std::string line; std::getline(text, line);)
        all.push_back(json::parse(line));
    return all;
}

// Returns the output of --columns help.
std::string columns_help(const Subject& tool)
{
    Options options;
    options.columns = {"help"};
    try {
        tool.check_fields(options, tool.sort);
    } catch (const Answer& answer) {
        return answer.text;
    }
    return {};
}

std::vector<std::string> available_columns(const Subject& tool)
{
    std::vector<std::string> names;
    std::istringstream lines(columns_help(tool));
    static const std::regex row("  [ +](\\S+).*");
    for (std::string line; std::getline(lines, line);)
        if (std::smatch found; std::regex_match(line, found, row))
            names.push_back(found[1]);
    return names;
}

std::map<std::string, double> sums(const Subject& tool, const std::vector<json>& rows)
{
    std::map<std::string, double> total;
    for (const json& row : rows)
        for (const char* key : tool.sums)
            total[key] += row.value(key, 0.0);
    return total;
}

std::vector<std::string> sorted_dumps(const std::vector<json>& rows)
{
    std::vector<std::string> all;
    for (const json& row : rows)
        all.push_back(row.dump());
    std::ranges::sort(all);
    return all;
}

double sum_of(const json& row, std::span<const char* const> keys)
{
    double sum = 0;
    for (const char* key : keys)
        sum += row.value(key, 0.0);
    return sum;
}

// Returns the keys that have a number as value in at least one row.
std::set<std::string> numbers_of(const std::vector<json>& rows)
{
    std::set<std::string> keys;
    for (const json& row : rows)
        for (const auto& [key, value] : row.items())
            if (value.is_number())
                keys.insert(key);
    return keys;
}

} // namespace

void check(const Subject& tool)
{
    const captured::Zone zone("UTC");

    SECTION("tables and histograms match the golden file")
    {
        std::string all;
        for (const char* words : tool.modes)
            all += shown(tool, words);
        compare(tool.name, all + "=== " + tool.name + " --columns help\n" + columns_help(tool));
    }

    SECTION("totals are the same for every --by")
    {
        const auto whole = sums(tool, records(tool, " --by pid"));
        for (const auto& [key, sum] : whole) {
            INFO(key);
            CHECK(sum > 0);
        }
        for (const char* by : tool.by)
            for (const auto& [key, sum] : sums(tool, records(tool, fmt::format(" --by {}", by)))) {
                INFO(by << ", " << key);
                CHECK(sum == whole.at(key));
            }
    }

    SECTION("options for text do not change JSON")
    {
        const std::string plain = tool.run(tool.full_table, true);
        for (const char* more : {" -T", " -r 1", " -X", " --columns PID", " --columns +COMM,-PID"})
            CHECK(tool.run(tool.full_table + more, true) == plain);
    }

    SECTION("-s sorts rows by any column, largest first")
    {
        const std::vector<json> rows = records(tool, "");
        REQUIRE(rows.size() > 2);
        for (const std::string& key : numbers_of(rows)) {
            // interval_ns is equal in all rows. The default order (tool.sort) has further sort keys.
            if (key == "interval_ns" || key == tool.sort)
                continue;
            INFO(key);
            const std::vector<json> sorted = records(tool, " -s " + key);
            CHECK(sorted_dumps(sorted) == sorted_dumps(rows));
            CHECK(std::ranges::is_sorted(sorted, std::greater<>(), [&](const json& row) {
                if (key == tool.rate)
                    return sum_of(row, tool.rate_of);
                return row.value(key, -std::numeric_limits<double>::infinity()); // unknown values sort last
            }));
        }
    }

    SECTION("--columns can select each column alone")
    {
        const auto names = available_columns(tool);
        REQUIRE(names.size() > 8);
        for (const std::string& name : names) {
            const std::string text = tool.run(tool.full_table + " --columns " + name, false);
            std::istringstream header(text.substr(0, text.find('\n')));
            const std::set<std::string> headers{std::istream_iterator<std::string>(header), {}};
            CHECK(headers == std::set{name}); // a set, since several columns may have the same header
            CHECK(std::ranges::count(text, '\n') > 2);
        }
    }
}

} // namespace gpusnoop::golden
