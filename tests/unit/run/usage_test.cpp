// SPDX-License-Identifier: Apache-2.0
// Invalid command lines are rejected with one sentence that names the mistake.
#include "run/run_tool.hpp"
#include "tools/tools.hpp"

#include "base/options.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cctype>
#include <string>
#include <vector>

using namespace gpusnoop;

namespace {

struct Mistake {
    std::string_view tool;
    std::vector<const char*> arguments;
    std::vector<const char*> words; // texts that the message must contain, ignoring case
};

const std::vector<Mistake> mistakes = {
    {"cudalaunch", {"-p", "firefox"}, {"-p", "-n firefox"}},
    {"cudalaunch", {"-p", "-5"}, {"-p"}},
    {"cudalaunch", {"-p", "0"}, {"-p"}},
    {"cudalaunch", {"-p", "99999999999"}, {"-p"}},
    {"cudalaunch", {"-p", "4194305"}, {"-p"}},
    {"cudalaunch", {"-p", "1x"}, {"-p"}},
    {"cudalaunch", {"-p", "a name"}, {"-p", "-n NAME"}},
    {"cudalaunch", {"-p", "1,x"}, {"-p"}},
    {"cudalaunch", {"-p", "1,,2"}, {"-p"}},
    {"cudalaunch", {"-p", ""}, {"-p"}},
    {"cudalaunch", {"-p"}, {"-p"}},
    {"cudalaunch", {"-p", "1", "-t", "1"}, {"-p", "-t"}},
    {"cudalaunch", {"-t", "x"}, {"-t"}},
    {"cudalaunch", {"-t", "0"}, {"-t"}},
    {"cudalaunch", {"-t", "-1"}, {"-t"}},
    {"cudalaunch", {"-d", "0"}, {"-d"}},
    {"cudalaunch", {"-d", "-1"}, {"-d"}},
    {"cudalaunch", {"-d", "x"}, {"-d"}},
    {"cudalaunch", {"-d", "nan"}, {"-d"}},
    {"cudalaunch", {"-d", "inf"}, {"-d"}},
    {"cudalaunch", {"-d", "5y"}, {"-d", "5m"}},
    {"cudalaunch", {"-d", "5 s"}, {"-d"}},
    {"cudalaunch", {"-d", "m"}, {"-d"}},
    {"cudalaunch", {"-d", "1ms"}, {"-d", "10ms"}},
    {"cudalaunch", {"-d", "11d"}, {"-d", "10d"}},
    {"cudalaunch", {"-d", "1e300"}, {"-d"}},
    {"cudalaunch", {"0"}, {"interval"}},
    {"cudalaunch", {"soon"}, {"interval"}},
    {"cudalaunch", {"./prog"}, {"interval", "-- ./prog"}},
    {"cudalaunch", {"python3"}, {"interval", "-- python3"}},
    {"cudalaunch", {"--"}, {"--", "program"}},
    {"cudalaunch", {"-p", "1", "--", "true"}, {"--", "-p"}},
    {"cudatop", {"-c", "x", "--", "true"}, {"--", "-c"}},
    {"nvioctl", {"-t", "1", "--", "true", "-Z"}, {"--", "-t"}},
    {"cudalaunch", {"-i", "0"}, {"-i"}},
    {"cudalaunch", {"-i", "-1"}, {"-i"}},
    {"cudalaunch", {"-i", "1", "1"}, {"interval"}},
    {"cudalaunch", {"1", "0"}, {"count"}},
    {"cudalaunch", {"1", "x"}, {"count"}},
    {"cudalaunch", {"1", "1.5"}, {"count"}},
    {"cudalaunch", {"1", "2", "3"}, {"3"}},
    {"cudalaunch", {"--colour"}, {"--colour"}},
    {"cudalaunch", {"-Z"}, {"-Z"}},
    {"cudalaunch", {"--by", "colour"}, {"colour", "kernel"}},
    {"cudalaunch", {"--by", "pid,,comm"}, {"--by"}},
    {"cudalaunch", {"--by", ""}, {"--by"}},
    {"cudalaunch", {"-H", "colour"}, {"colour", "latency"}},
    {"cudalaunch", {"--api", "vulkan"}, {"vulkan", "driver"}},
    {"cudalaunch", {"--attach", "glue"}, {"glue", "session"}},
    {"cudalaunch", {"-s", "colour"}, {"colour"}},
    {"cudalaunch", {"-s", ""}, {"column"}},
    {"cudalaunch", {"-e", "-H", "grid"}, {"-e", "-H"}},
    {"cudalaunch", {"-P"}, {"-P", "-H"}},
    {"cudalaunch", {"-L"}, {"-L", "-H"}},
    {"cudalaunch", {"-x", "-H", "gap"}, {"-x"}},
    {"cudalaunch", {"-H", "latency", "-m", "-N"}, {"-m"}},
    {"cudalaunch", {"-n", ""}, {"-n"}},
    {"cudalaunch", {"-n", "sixteen-letters!"}, {"-n"}},
    {"cudalaunch", {"-r", "x"}, {"-r"}},
    {"cudalaunch", {"-r", "-1"}, {"-r"}},
    {"cudalaunch", {"--ring-mb", "3"}, {"--ring-mb"}},
    {"cudalaunch", {"--ring-mb", "0"}, {"--ring-mb"}},
    {"cudalaunch", {"--ring-mb", "1000000"}, {"--ring-mb"}},
    {"cudalaunch", {"--table-rows", "1"}, {"--table-rows"}},
    {"cudalaunch", {"--record", ""}, {"--record"}},
    {"cudalaunch", {"--record-max", "5"}, {"--record-max", "1.0M"}},
    {"cudalaunch", {"--record-max", "10Q"}, {"--record-max", "500M"}},
    {"cudalaunch", {"--record-max", "nan"}, {"--record-max"}},

    {"cudamemcpy", {"-H", "grid"}, {"grid", "size"}},
    {"cudamemcpy", {"-H", "gap"}, {"gap", "rate"}},
    {"cudamemcpy", {"--by", "kernel"}, {"kernel", "memory"}},
    {"cudamemcpy", {"--by", "kind,,pid"}, {"--by"}},
    {"cudamemcpy", {"--by", ""}, {"--by"}},
    {"cudamemcpy", {"--api", "vulkan"}, {"vulkan", "driver"}},
    {"cudamemcpy", {"-s", "launches"}, {"launches"}},
    {"cudamemcpy", {"-e", "-H", "size"}, {"-e", "-H"}},
    {"cudamemcpy", {"-U", "-H", "size"}, {"-U", "-H"}},
    {"cudamemcpy", {"-P"}, {"-P", "-H"}},
    {"cudamemcpy", {"-L"}, {"-L", "-H"}},
    {"cudamemcpy", {"-H", "latency", "-m", "-N"}, {"-m"}},
    {"cudamemcpy", {"-p", "1", "-t", "1"}, {"-p", "-t"}},
    {"cudamemcpy", {"--table-rows", "1"}, {"--table-rows"}},
    {"cudamemcpy", {"-x", "-H", "rate"}, {"-x"}},
    {"cudamemcpy", {"--colour"}, {"--colour"}},

    {"cudasync", {"-H", "colour"}, {"colour", "duration"}},
    {"cudasync", {"-H", "latency"}, {"latency", "duration"}},
    {"cudasync", {"-H", ""}, {"-H"}},
    {"cudasync", {"-l", "-1"}, {"-l"}},
    {"cudasync", {"-l", "nan"}, {"-l"}},
    {"cudasync", {"-l", "inf"}, {"-l"}},
    {"cudasync", {"-l", "1e13"}, {"-l"}},
    {"cudasync", {"-l", "long"}, {"-l"}},
    {"cudasync", {"-l"}, {"-l"}},
    {"cudasync", {"--by", "kernel"}, {"kernel", "wait"}},
    {"cudasync", {"--by", "wait,,pid"}, {"--by"}},
    {"cudasync", {"--by", ""}, {"--by"}},
    {"cudasync", {"-e", "-H", "duration"}, {"-e", "-H"}},
    {"cudasync", {"-U", "-H", "duration"}, {"-U", "-H"}},
    {"cudasync", {"-P"}, {"-P", "-H"}},
    {"cudasync", {"-L"}, {"-L", "-H"}},
    {"cudasync", {"-s", "launches"}, {"launches"}},
    {"cudasync", {"-s", ""}, {"column"}},
    {"cudasync", {"--api", "vulkan"}, {"vulkan", "driver"}},
    {"cudasync", {"-H", "duration", "-m", "-N"}, {"-m"}},
    {"cudasync", {"--latency"}, {"--latency"}},
    {"cudasync", {"-p", "python"}, {"-p"}},
    {"cudasync", {"--table-rows", "1"}, {"--table-rows"}},

    {"gpualloc", {"-o", "5"}, {"-o", "--leaks"}},
    {"gpualloc", {"--leaks", "-e"}, {"--leaks", "-e"}},
    {"gpualloc", {"--leaks", "--exited"}, {"--leaks", "--exited"}},
    {"gpualloc", {"--exited", "-e"}, {"--exited", "-e"}},
    {"gpualloc", {"--leaks", "-H", "size"}, {"--leaks", "-H"}},
    {"gpualloc", {"--leaks", "--by", "kind"}, {"--leaks", "--by"}},
    {"gpualloc", {"--leaks", "-x"}, {"--leaks", "-x"}},
    {"gpualloc", {"--exited", "-x"}, {"--exited", "-x"}},
    {"gpualloc", {"--leaks", "-o", "-1"}, {"-o"}},
    {"gpualloc", {"--leaks", "-o", "nan"}, {"-o"}},
    {"gpualloc", {"--leaks", "-o", "old"}, {"-o"}},
    {"gpualloc", {"--leaks", "-o", "1e12"}, {"-o"}},
    {"gpualloc", {"--leaks", "-o"}, {"-o"}},
    {"gpualloc", {"--by", "stream"}, {"stream"}},
    {"gpualloc", {"--by", "colour"}, {"colour", "kind"}},
    {"gpualloc", {"--by", "kind,,pid"}, {"--by"}},
    {"gpualloc", {"--by", ""}, {"--by"}},
    {"gpualloc", {"-H", "colour"}, {"colour", "lifetime"}},
    {"gpualloc", {"-H", ""}, {"-H"}},
    {"gpualloc", {"-H", "rate"}, {"rate", "latency"}},
    {"gpualloc", {"-e", "-H", "size"}, {"-e", "-H"}},
    {"gpualloc", {"-x", "-H", "lifetime"}, {"-x", "-H"}},
    {"gpualloc", {"-U", "-H", "size"}, {"-U", "-H"}},
    {"gpualloc", {"--live-entries", "0"}, {"--live-entries"}},
    {"gpualloc", {"--live-entries", "many"}, {"--live-entries"}},
    {"gpualloc", {"--live-entries", "-5"}, {"--live-entries"}},
    {"gpualloc", {"--live-entries", "1e12"}, {"--live-entries"}},
    {"gpualloc", {"-P"}, {"-P", "-H"}},
    {"gpualloc", {"-s", "launches"}, {"launches"}},
    {"gpualloc", {"--api", "vulkan"}, {"vulkan", "driver"}},
    {"gpualloc", {"--leak"}, {"--leak"}},
    {"gpualloc", {"-p", "python"}, {"-p"}},
    {"gpualloc", {"--table-rows", "1"}, {"--table-rows"}},

    {"cudagraph", {"-H", "colour"}, {"-H", "launch", "instantiate", "nodes", "colour"}},
    {"cudagraph", {"-H", ""}, {"-H"}},
    {"cudagraph", {"-H", "size"}, {"size", "nodes"}},
    {"cudagraph", {"--by", "colour"}, {"colour", "graph"}},
    {"cudagraph", {"--by", "graph,,pid"}, {"--by"}},
    {"cudagraph", {"--by", ""}, {"--by"}},
    {"cudagraph", {"--by", "kind"}, {"kind"}},
    {"cudagraph", {"--summary", "--by", "pid"}, {"--summary", "--by"}},
    {"cudagraph", {"--summary", "-e"}, {"--summary", "-e"}},
    {"cudagraph", {"--summary", "-H", "launch"}, {"--summary", "-H"}},
    {"cudagraph", {"--storms", "--summary"}, {"--storms", "--summary"}},
    {"cudagraph", {"--storms", "--by", "pid"}, {"--storms", "--by"}},
    {"cudagraph", {"--storms", "-e"}, {"--storms", "-e"}},
    {"cudagraph", {"--storms", "-H", "nodes"}, {"--storms", "-H"}},
    {"cudagraph", {"--storms", "-x"}, {"--storms", "-x"}},
    {"cudagraph", {"--storms", "0"}, {"--storms"}},
    {"cudagraph", {"--storms=-1"}, {"--storms"}},
    {"cudagraph", {"--storms=many"}, {"--storms"}},
    {"cudagraph", {"--storms", "1e12"}, {"--storms"}},
    {"cudagraph", {"--storms", "--warm-up", "long"}, {"--warm-up"}},
    {"cudagraph", {"--storms", "--warm-up", "nan"}, {"--warm-up"}},
    {"cudagraph", {"--storms", "--warm-up=-1"}, {"--warm-up"}},
    {"cudagraph", {"--storms", "--warm-up"}, {"--warm-up"}},
    {"cudagraph", {"--warm-up", "5"}, {"--warm-up", "--storms"}},
    {"cudagraph", {"-e", "-H", "launch"}, {"-e", "-H"}},
    {"cudagraph", {"-s", "bytes"}, {"bytes"}},
    {"cudagraph", {"--api", "vulkan"}, {"vulkan", "driver"}},
    {"cudagraph", {"--storm"}, {"--storm"}},
    {"cudagraph", {"-P"}, {"-P", "-H"}},
    {"cudagraph", {"-p", "python"}, {"-p"}},
    {"cudagraph", {"--table-rows", "1"}, {"--table-rows"}},
    {"cudagraph", {"-U", "-H", "launch"}, {"-U", "-H"}},
    {"cudagraph", {"-x", "-H", "nodes"}, {"-x", "-H"}},

    {"cudatop", {"-s", "colour"}, {"colour", "LAUNCH/s"}},
    {"cudatop", {"-s", ""}, {"column"}},
    {"cudatop", {"--columns", "PID,colour"}, {"colour"}},
    {"cudatop", {"--columns", "+colour"}, {"'colour'"}},
    {"cudatop", {"--columns", "-"}, {"column"}},
    {"cudatop", {"--latency", "--cheap"}, {"--latency", "--cheap"}},
    {"cudatop", {"--at", "10:00:00"}, {"--at", "--replay"}},
    {"cudatop", {"--replay", "x", "-j"}, {"--replay", "-j"}},
    {"cudatop", {"--replay", "x", "--by", "pod"}, {"--replay", "--by"}},
    {"cudatop", {"--replay", "x", "--listen", "9000"}, {"--replay", "--listen"}},
    {"cudatop", {"--replay", "x", "5"}, {"--replay", "interval"}},
    {"cudalaunch", {"--replay", ""}, {"--replay"}},
    {"cudalaunch", {"--at", "10:00:00"}, {"--at", "--replay"}},
    {"cudalaunch", {"--replay", "x", "-p", "1"}, {"--replay", "--pid"}},
    {"cudalaunch", {"--replay", "x", "-e"}, {"--replay", "--events"}},
    {"cudalaunch", {"--replay", "x", "-l"}, {"--replay", "--latency"}},
    {"cudasync", {"--replay", "x", "-H", "duration"}, {"--replay", "--hist"}},
    {"cudagap", {"--replay", "x", "--why"}, {"--replay", "--why"}},
    {"gpuspend", {"--replay", "x"}, {"--replay", "--state"}},
    {"cudagap", {"--interrupts", "--cheap"}, {"--interrupts", "--cheap"}},
    {"cudagap", {"--interrupts", "--files"}, {"--interrupts", "--files"}},
    {"cudagap", {"--interrupts", "--tcp"}, {"--interrupts", "--tcp"}},
    {"cudagap", {"--interrupts", "-U"}, {"--interrupts", "-U"}},
    {"cudagap", {"--files", "--tcp"}, {"--files", "--tcp"}},
    {"cudagap", {"--files", "--why"}, {"--files", "--why"}},
    {"cudagap", {"--files", "-H", "gap"}, {"--files", "-H"}},
    {"cudatop", {"-x"}, {"-x", "error"}},
    {"cudatop", {"-U"}, {"-U", "stacks"}},
    {"cudatop", {"--by", "colour"}, {"colour", "kernel", "device"}},
    {"cudatop", {"--by", "pid,,comm"}, {"--by"}},
    {"cudatop", {"--by", ""}, {"--by"}},
    {"cudatop", {"-e"}, {"-e"}},
    {"cudatop", {"--live-entries", "1"}, {"--live-entries"}},
    {"cudatop", {"0"}, {"interval"}},
    {"cudatop", {"1", "0"}, {"count"}},
    {"cudatop", {"-b", "soon"}, {"interval"}},

    {"nvioctl", {"-H", "colour"}, {"colour", "latency"}},
    {"nvioctl", {"-l", "-1"}, {"-l"}},
    {"nvioctl", {"-l", "nan"}, {"-l"}},
    {"nvioctl", {"--by", "colour"}, {"colour", "command"}},
    {"nvioctl", {"--by", "stream"}, {"stream"}},
    {"nvioctl", {"--attach", "session"}, {"session", "fentry"}},
    {"nvioctl", {"--xid", "-e"}, {"--xid", "-e"}},
    {"nvioctl", {"--xid", "--columns", "PID"}, {"--xid", "--columns"}},
    {"nvioctl", {"--api", "driver"}, {"--api"}},

    {"cudalaunch", {"-e", "--columns", "PID"}, {"--columns", "-e"}},
    {"cudalaunch", {"-H", "grid", "--columns", "PID"}, {"--columns", "-H"}},
};

// Mistakes whose message ends with a suggestion.
const std::vector<Mistake> near_misses = {
    {"cudalaunch", {"--laten"}, {"; did you mean '--latency'?"}},
    {"cudalaunch", {"--user-stack"}, {"; did you mean '--user-stacks'?"}},
    {"cudalaunch", {"--by", "pid,kernle"}, {"; did you mean 'kernel'?"}},
    {"cudalaunch", {"-s", "launch"}, {"; did you mean 'LAUNCHES'?"}},
    {"cudalaunch", {"-H", "latencies"}, {"; did you mean 'latency'?"}},
    {"cudalaunch", {"--attach", "tracfs"}, {"; did you mean 'tracefs'?"}},
    {"cudatop", {"-s", "launchs"}, {"; did you mean 'LAUNCH/s'?"}},
    {"cudatop", {"--by", "pods"}, {"; did you mean 'pod'?"}},
    {"gpualloc", {"--leak"}, {"; did you mean '--leaks'?"}},
    {"gpualloc", {"--columns", "PID,LIV"}, {"; did you mean 'LIVE'?"}},
};

// Mistakes that every tool must reject.
const std::vector<Mistake> mistakes_of_all = {
    {"", {"--columns", "nonsense"}, {"'nonsense'", "--columns help"}},
    {"", {"--columns", "+"}, {"''"}},
    {"", {"--columns", "-NOPE"}, {"'NOPE'"}},
    {"", {"--colour"}, {"--colour"}},
    {"", {"-s", "colour"}, {"colour"}},
};

std::string lower(std::string_view text)
{
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

// The error message; empty if the command line is valid.
std::string refusal(const NamedTool& tool, const std::vector<const char*>& arguments)
{
    std::vector<std::string> words{std::string(tool.name)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    try {
        Options options;
        plan_run(static_cast<int>(words.size()), argv.data(), *tool.make(), options);
    } catch (const UsageError& error) {
        return error.what();
    }
    return {};
}

void check(const NamedTool& tool, const Mistake& mistake)
{
    std::string typed(tool.name);
    for (const char* argument : mistake.arguments)
        (typed += " ") += argument;
    const std::string message = refusal(tool, mistake.arguments);
    INFO(typed << ": " << message);
    CHECK(!message.empty());
    CHECK(message.size() < 500);
    CHECK(message.find('\n') == std::string::npos);
    for (const char* word : mistake.words)
        CHECK(lower(message).find(lower(word)) != std::string::npos);
}

} // namespace

TEST_CASE("a mistake on the command line is rejected with a message that names it")
{
    for (const Mistake& mistake : mistakes)
        check(*std::ranges::find(tools, mistake.tool, &NamedTool::name), mistake);
}

TEST_CASE("a misspelt word gets a suggestion if a known word is similar")
{
    for (const Mistake& mistake : near_misses)
        check(*std::ranges::find(tools, mistake.tool, &NamedTool::name), mistake);
    for (const std::vector<const char*>& arguments :
         {std::vector<const char*>{"--colour"}, {"--by", "colour"}, {"-s", "colour"}, {"--by", "x"}})
        CHECK(refusal(tools[0], arguments).find("did you mean") == std::string::npos);
}

TEST_CASE("every tool rejects unknown columns, options and sort keys")
{
    for (const NamedTool& tool : tools)
        for (const Mistake& mistake : mistakes_of_all)
            check(tool, mistake);
}

TEST_CASE("valid command lines are accepted")
{
    for (const NamedTool& tool : tools)
        for (const std::vector<const char*>& arguments : {std::vector<const char*>{},
                                                          {"-j", "1", "2"},
                                                          {"-p", "1", "-T"},
                                                          {"--by", "pod", "--columns", "+COMM,-PID"}})
            CHECK(refusal(tool, arguments).empty());
}
