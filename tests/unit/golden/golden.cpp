// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

#include "../output/captured.hpp"
#include "bpf/shared/histogram.h"
#include "tests/unit/attach/all_probes.hpp"
#include "tests/unit/base/folder.hpp"

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

std::vector<std::string> split(const std::string& text, char separator)
{
    std::istringstream stream(text);
    std::vector<std::string> parts;
    for (std::string part; std::getline(stream, part, separator);)
        parts.push_back(part);
    return parts;
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
        else if (word == "--columns" && stream >> word)
            options.columns = split(word, ',');
        else
            REQUIRE(parse_option(word, stream));
    }
    settings.apply(options);
}

std::span<const Probe> all_probes()
{
    static const std::vector<Probe> all = [] {
        std::vector<Probe> probes = gpusnoop::probes(Library::driver, all_kinds());
        std::ranges::move(gpusnoop::probes(Library::runtime, all_kinds()), std::back_inserter(probes));
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

std::vector<CallDelta> as_measured(std::vector<CallDelta> calls, const Options& options, const CallSettings& settings,
                                   Measures measures)
{
    std::erase_if(calls, [&](const CallDelta& call) {
        return (call.key.layer == LAYER_DRIVER && !settings.driver) ||
               (call.key.layer == LAYER_RUNTIME && !settings.runtime) || (options.failed_only && !call.key.result);
    });
    const uint64_t unit = settings.histogram() ? options.unit_ns() : 1;
    for (CallDelta& call : calls) {
        call.key.duration = static_cast<uint16_t>(histogram_bucket(call[CALL_TOTAL_NS] / call[CALL_COUNT] / unit));
        if (!measures.durations) {
            call.key.duration = BUCKET_NONE;
            call[CALL_TOTAL_NS] = call[CALL_MAX_NS] = 0;
        }
        if (!measures.results)
            call.key.result = 0;
    }
    return calls;
}

std::string written(const Options& options, const std::function<void(Output&)>& print)
{
    if (!options.json)
        return captured::written(make_text_output(options.timestamps), print).out;
    // Removes the time of day of events, because it is computed from the current time and differs between runs.
    static const std::regex of_call(R"re(("type":"event",)"time":"[^"]*",("time_ns"))re");
    return std::regex_replace(captured::written(make_json_output(), print).out, of_call, "$1$2");
}

std::string section(const std::string& words, const std::string& text, const std::string& records,
                    std::set<std::string>& shown)
{
    std::string all = fmt::format("=== {}\n{}", words, text);
    for (const std::string& line : split(records, '\n')) {
        const size_t before = shown.size();
        const json record = json::parse(line);
        for (const auto& [key, value] : record.items())
            shown.insert(key);
        if (shown.size() > before)
            all += line + "\n";
    }
    return all;
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

std::vector<json> parsed(const std::string& lines)
{
    std::vector<json> all;
    for (const std::string& line : split(lines, '\n'))
        all.push_back(json::parse(line));
    return all;
}

std::vector<json> records(const Subject& tool, const std::string& more)
{
    return parsed(tool.run(tool.full_table + more, true));
}

std::map<std::string, double> sums(const Subject& tool, const std::vector<json>& rows)
{
    std::map<std::string, double> total;
    for (const json& row : rows)
        for (const std::string& key : split(tool.sums, ' '))
            total[key] += row.value(key, 0.0);
    return total;
}

double sum_of(const json& row, const std::string& keys)
{
    double sum = 0;
    for (const std::string& key : split(keys, ' '))
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
        std::set<std::string> shown;
        for (const std::string words : tool.modes) {
            const bool histogram = words.starts_with("-H");
            all += section(tool.name + " " + words, tool.run(words, histogram), histogram ? "" : tool.run(words, true),
                           shown);
        }
        static const std::regex spaces("\\s+");
        all += section(tool.name + " --columns help",
                       std::regex_replace(tool.run("--columns help", false), spaces, " ") + "\n", "", shown);
        compare(tool.name, all);
    }

    SECTION("totals are the same for every --by")
    {
        const auto whole = sums(tool, records(tool, " --by pid"));
        for (const auto& [key, sum] : whole) {
            INFO(key);
            CHECK(sum > 0);
        }
        for (const std::string& by : split(tool.by + " comm thread container pod namespace cgroup", ' '))
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
            CHECK(std::ranges::is_permutation(sorted, rows));
            CHECK(std::ranges::is_sorted(sorted, std::greater<>(), [&](const json& row) {
                if (key == tool.rate)
                    return sum_of(row, tool.rate_of);
                return row.value(key, -std::numeric_limits<double>::infinity()); // unknown values sort last
            }));
        }
    }

    SECTION("--columns can select each column alone")
    {
        const std::vector<json> columns = parsed(tool.run("--columns json", false));
        REQUIRE(columns.size() > 8);
        for (const json& column : columns) {
            const std::string name = column["header"];
            if (name.empty() || column["in"] != "table")
                continue;
            const std::string text = tool.run(tool.full_table + " --columns " + name, false);
            std::istringstream header(text.substr(0, text.find('\n')));
            const std::set<std::string> headers{std::istream_iterator<std::string>(header), {}};
            CHECK(headers == std::set{name}); // a set, since several columns may have the same header
            CHECK(std::ranges::count(text, '\n') > 2);
        }
    }
}

} // namespace gpusnoop::golden
