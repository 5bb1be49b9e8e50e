// SPDX-License-Identifier: Apache-2.0
// Invalid command lines are rejected with one sentence that names the mistake.
#include "tests/unit/run/parsed.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cctype>

using namespace gpusnoop;

namespace {

struct Mistake {
    std::string_view tools;                      // separated by blanks; "all"
    std::vector<std::string_view> command_lines; // arguments, some of them in single quotes
    std::vector<std::string_view> words = {}; // texts that each message must contain, ignoring case; none: its options
};

constexpr std::string_view counting = "cudalaunch cudamemcpy cudasync gpualloc cudagraph";

const std::vector<Mistake> mistakes = {
    // Processes, threads and programs.
    {"cudalaunch", {"-p firefox"}, {"-p", "-n firefox"}},
    {"cudalaunch", {"-p 'a name'"}, {"-p", "-n NAME"}},
    {counting, {"-p -5", "-p 0", "-p 99999999999", "-p 4194305", "-p 1x", "-p 1,x", "-p 1,,2", "-p ''", "-p"}},
    {counting, {"-p python", "-p 1 -t 1"}},
    {"cudalaunch", {"-t x", "-t 0", "-t -1", "-n ''", "-n sixteen-letters!"}},
    {"cudalaunch", {"--"}, {"--", "program"}},
    {"cudalaunch", {"-p 1 -- true"}, {"--", "-p"}},
    {"cudatop", {"-c x -- true"}, {"--", "-c"}},
    {"nvioctl", {"-t 1 -- true -Z"}, {"--", "-t"}},
    {"cudalaunch", {"--user nosuchuser -- true"}, {"there is no user 'nosuchuser'"}},
    {"cudalaunch", {"--user 4294967296 -- true"}, {"there is no user '4294967296'"}},
    {"cudalaunch", {"--user '' -- true"}, {"there is no user ''"}},
    {"cudalaunch", {"--user root"}, {"add -- PROGRAM"}},

    // Times and counts.
    {"cudalaunch", {"-d 0", "-d -1", "-d x", "-d nan", "-d inf", "-d '5 s'", "-d m", "-d 1e300"}},
    {"cudalaunch", {"-d 5y"}, {"-d", "5m"}},
    {"cudalaunch", {"-d 1ms"}, {"-d", "10ms"}},
    {"cudalaunch", {"-d 11d"}, {"-d", "10d"}},
    {"cudalaunch", {"-i 0", "-i -1", "-r x", "-r -1"}},
    {"cudalaunch cudatop", {"0", "soon", "-i 1 1"}, {"interval"}},
    {"cudatop", {"-b soon"}, {"interval"}},
    {"cudalaunch", {"./prog"}, {"interval", "-- ./prog"}},
    {"cudalaunch", {"python3"}, {"interval", "-- python3"}},
    {"cudalaunch cudatop", {"1 0", "1 x", "1 1.5"}, {"count"}},
    {"cudalaunch", {"1 2 3"}, {"3"}},
    {"cudasync", {"-l -1", "-l nan", "-l inf", "-l 1e13", "-l long", "-l"}},
    {"nvioctl", {"-l -1", "-l nan"}},
    {"cudagraph", {"--storms 0", "--storms=-1", "--storms=many", "--storms 1e12"}},
    {"ncclwait", {"--stalled never"}},

    // Sizes.
    {"cudalaunch", {"--ring-mb 3", "--ring-mb 0", "--ring-mb 1000000", "--record-max nan"}},
    {"cudalaunch", {"--record-max 5"}, {"--record-max", "1.0M"}},
    {"cudalaunch", {"--record-max 10Q"}, {"--record-max", "500M"}},
    {counting, {"--table-rows 1"}},
    {"gpualloc", {"--live-entries 0", "--live-entries many", "--live-entries -5", "--live-entries 1e12"}},
    {"cudatop", {"--live-entries 1"}},

    // Words.
    {"all", {"--colour"}},
    {"cudalaunch", {"-Z", "--record ''", "--replay ''"}},
    {"cudasync", {"--latency"}},
    {"cudagraph", {"--storm"}},
    {"cudalaunch", {"--attach glue"}, {"glue", "session"}},
    {"nvioctl", {"--attach session"}, {"session", "fentry"}},
    {"nvioctl", {"--attach multi"}, {"multi", "fentry"}},
    {"nvioctl", {"--api driver"}},
    {counting, {"--api vulkan"}, {"vulkan", "driver"}},
    {"cudalaunch", {"--by colour"}, {"colour", "kernel"}},
    {"cudamemcpy", {"--by kernel"}, {"kernel", "memory"}},
    {"cudasync", {"--by kernel"}, {"kernel", "wait"}},
    {"gpualloc", {"--by colour"}, {"colour", "kind"}},
    {"gpualloc nvioctl", {"--by stream"}, {"stream"}},
    {"cudagraph", {"--by colour"}, {"colour", "graph"}},
    {"cudagraph", {"--by kind"}, {"kind"}},
    {"cudatop", {"--by colour"}, {"colour", "kernel", "device"}},
    {"nvioctl", {"--by colour"}, {"colour", "command"}},
    {"cudagap", {"--by stream"}, {"add -H gap"}},
    {"ncclwait", {"--by ranks"}, {"rank"}},
    {"cudalaunch cudatop", {"--by pid,,comm", "--by ''"}},
    {"cudamemcpy gpualloc", {"--by kind,,pid", "--by ''"}},
    {"cudasync", {"--by wait,,pid", "--by ''"}},
    {"cudagraph", {"--by graph,,pid", "--by ''"}},
    {"cudalaunch", {"-H colour"}, {"colour", "latency"}},
    {"cudamemcpy", {"-H grid"}, {"grid", "size"}},
    {"cudamemcpy", {"-H gap"}, {"gap", "rate"}},
    {"cudasync", {"-H colour"}, {"colour", "duration"}},
    {"cudasync", {"-H latency"}, {"latency", "duration"}},
    {"cudasync gpualloc cudagraph", {"-H ''"}},
    {"gpualloc", {"-H colour"}, {"colour", "lifetime"}},
    {"gpualloc", {"-H rate"}, {"rate", "latency"}},
    {"cudagraph", {"-H colour"}, {"-H", "launch", "instantiate", "nodes", "colour"}},
    {"cudagraph", {"-H size"}, {"size", "nodes"}},
    {"nvioctl", {"-H colour"}, {"colour", "latency"}},
    {"nvioctl", {"-H size"}, {"size", "latency"}},
    {"cudagap", {"-H duration"}, {"gap"}},
    {"ncclwait", {"-H skews"}, {"'skew'"}},
    {"all", {"-s colour"}, {"colour"}},
    {"cudalaunch cudasync cudatop", {"-s ''"}, {"column"}},
    {"cudamemcpy cudasync gpualloc", {"-s launches"}, {"launches"}},
    {"cudagraph", {"-s bytes"}, {"bytes"}},
    {"cudatop", {"-s colour"}, {"LAUNCH/s"}},
    {"nvioctl", {"-s nothing"}, {"nothing"}},
    {"all", {"--columns nonsense"}, {"'nonsense'", "--columns help"}},
    {"all", {"--columns +"}, {"''"}},
    {"all", {"--columns -NOPE"}, {"'NOPE'"}},
    {"cudatop", {"--columns PID,colour", "--columns +colour"}, {"'colour'"}},
    {"cudatop", {"--columns -"}, {"column"}},
    {"gpuspend", {"-p 1 --dcgm http://example.com/metrics"}, {"is not a URL on this machine"}},

    // Combinations.
    {"cudalaunch", {"-e -H grid"}},
    {"cudamemcpy gpualloc", {"-e -H size", "-U -H size"}},
    {"cudasync", {"-e -H duration", "-U -H duration"}},
    {"cudagraph", {"-e -H launch", "-U -H launch"}},
    {"nvioctl", {"-U -H latency"}},
    {"cudagap", {"-e -H gap"}, {"not both"}},
    {"ncclwait", {"-e -H skew"}, {"not both"}},
    {counting, {"-P"}, {"-P", "-H"}},
    {"cudagap", {"-P"}, {"--by pid"}},
    {"cudalaunch cudamemcpy cudasync", {"-L"}, {"-L", "-H"}},
    {"ncclwait", {"-L"}, {"--by rank"}},
    {"cudalaunch", {"-x -H gap"}, {"-x"}},
    {"cudamemcpy", {"-x -H rate"}, {"-x"}},
    {"gpualloc", {"-x -H lifetime"}},
    {"cudagraph", {"-x -H nodes"}},
    {"ncclwait", {"-x -H skew"}, {"-x or -H"}},
    {"cudalaunch cudamemcpy", {"-H latency -m -N"}, {"-m"}},
    {"cudasync", {"-H duration -m -N"}, {"-m"}},
    {"cudalaunch", {"-e --columns PID"}, {"--columns is for tables", "-e"}},
    {"cudalaunch", {"-H grid --columns PID"}, {"--columns is for tables", "-H"}},
    {"cudalaunch",
     {"--max-overhead 5 -e", "--max-overhead 5 -l", "--max-overhead 5 -x", "--max-overhead 5 --api both",
      "--max-overhead 5 -H gap"},
     {"--max-overhead"}},
    {"gpualloc", {"-o 5"}, {"-o", "--leaks"}},
    {"gpualloc", {"--leaks -o -1", "--leaks -o nan", "--leaks -o old", "--leaks -o 1e12", "--leaks -o"}, {"-o"}},
    {"gpualloc", {"--leaks -e", "--leaks --exited", "--leaks -H size", "--leaks --by kind", "--leaks -x"}},
    {"gpualloc", {"--exited -e", "--exited -x"}},
    {"cudagraph", {"--summary --by pid", "--summary -e", "--summary -H launch", "--storms --summary"}},
    {"cudagraph", {"--storms --by pid", "--storms -e", "--storms -H nodes", "--storms -x"}},
    {"cudagraph", {"--warm-up 5"}, {"--warm-up", "--storms"}},
    {"cudagraph",
     {"--storms --warm-up long", "--storms --warm-up nan", "--storms --warm-up=-1", "--storms --warm-up"},
     {"--warm-up"}},
    {"cudatop", {"-x"}, {"-x", "error"}},
    {"cudatop", {"-U"}, {"-U", "stacks"}},
    {"cudatop", {"-e", "--latency --cheap"}},
    {"cudatop", {"--listen 0 -j", "--listen 0 --columns PID"}, {"--listen"}},
    {"cudatop cudalaunch", {"--at 10:00:00"}, {"--at", "--replay"}},
    {"cudatop", {"--replay x -j", "--replay x --by pod", "--replay x --listen 9000"}},
    {"cudatop", {"--replay x 5"}, {"--replay", "interval"}},
    {"cudalaunch", {"--replay x -p 1"}, {"--replay", "--pid"}},
    {"cudalaunch", {"--replay x -e"}, {"--replay", "--events"}},
    {"cudalaunch", {"--replay x -l"}, {"--replay", "--latency"}},
    {"cudasync", {"--replay x -H duration"}, {"--replay", "--hist"}},
    {"cudagap", {"--replay x --why"}},
    {"gpuspend", {"--replay x"}, {"--replay", "--state"}},
    {"cudagap", {"--interrupts --cheap", "--interrupts --files", "--interrupts --tcp", "--interrupts -U"}},
    {"cudagap", {"--files --tcp", "--files --why", "--files -H gap"}},
    {"cudagap", {"--tcp -U", "--tcp --why", "--tcp -e", "--tcp --by thread"}, {"--tcp"}},
    {"cudagap", {"-U --why", "-U -H gap", "-U --cheap"}, {"-U prints its own table"}},
    {"cudagap",
     {"--cheap --why", "--cheap -e", "--cheap -l 1ms", "--cheap -H gap"},
     {"--cheap does not trace why threads block"}},
    {"cudagap", {"-l 5ms --columns PID"}, {"-e"}},
    {"ncclwait", {"-e 1 2"}, {"COUNT"}},
    {"ncclwait", {"-e --by rank"}, {"--by"}},
    {"nvioctl", {"--xid -e", "--xid --by pid", "--xid --columns PID"}},

    // A misspelt word gets a suggestion if a known word is similar.
    {"cudalaunch", {"--laten"}, {"; did you mean '--latency'?"}},
    {"cudalaunch", {"--user-stack"}, {"; did you mean '--user-stacks'?"}},
    {"cudalaunch", {"--by pid,kernle"}, {"; did you mean 'kernel'?"}},
    {"cudalaunch", {"-s launch"}, {"; did you mean 'LAUNCHES'?"}},
    {"cudalaunch", {"-H latencies"}, {"; did you mean 'latency'?"}},
    {"cudalaunch", {"--attach tracfs"}, {"; did you mean 'tracefs'?"}},
    {"cudatop", {"-s launchs"}, {"; did you mean 'LAUNCH/s'?"}},
    {"cudatop", {"--by pods"}, {"; did you mean 'pod'?"}},
    {"gpualloc", {"--leak"}, {"; did you mean '--leaks'?"}},
    {"gpualloc", {"--columns PID,LIV"}, {"; did you mean 'LIVE'?"}},
};

std::string lower(std::string_view text)
{
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

// Splits at blanks outside of single quotes.
std::vector<std::string> split(std::string_view line)
{
    std::vector<std::string> words;
    bool in_word = false, quoted = false;
    for (const char c : line) {
        if (c == ' ' && !quoted) {
            in_word = false;
            continue;
        }
        if (!in_word)
            words.emplace_back();
        in_word = true;
        if (c == '\'')
            quoted = !quoted;
        else
            words.back() += c;
    }
    return words;
}

std::vector<std::string> words_for(const Mistake& mistake, std::string_view command_line)
{
    std::vector<std::string> words(mistake.words.begin(), mistake.words.end());
    if (words.empty())
        for (const std::string& argument : split(command_line))
            if (argument.size() > 1 && argument[0] == '-' && !std::isdigit(argument[1]))
                words.push_back(argument.substr(0, argument.find('=')));
    return words;
}

std::string refusal(const NamedTool& tool, std::string_view command_line)
{
    return parsed(tool, split(command_line)).refusal;
}

} // namespace

TEST_CASE("a mistake on the command line is rejected with a message that names it")
{
    for (const Mistake& mistake : mistakes) {
        const std::vector<std::string> names = split(mistake.tools);
        for (const NamedTool& tool : tools) {
            if (mistake.tools != "all" && std::ranges::find(names, tool.name) == names.end())
                continue;
            for (const std::string_view command_line : mistake.command_lines) {
                const std::string message = refusal(tool, command_line);
                INFO(tool.name << " " << command_line << ": " << message);
                CHECK(!message.empty());
                CHECK(message.size() < 500);
                CHECK(message.find('\n') == std::string::npos);
                for (const std::string& word : words_for(mistake, command_line))
                    CHECK(lower(message).find(lower(word)) != std::string::npos);
            }
        }
    }
    for (const std::string_view strange : {"--colour", "--by colour", "-s colour", "--by x"})
        CHECK(refusal(tools[0], strange).find("did you mean") == std::string::npos);
}

TEST_CASE("valid command lines are accepted")
{
    for (const NamedTool& tool : tools)
        for (const std::string_view command_line : {"", "-j 1 2", "-p 1 -T", "--by pod --columns +COMM,-PID"})
            CHECK(refusal(tool, command_line).empty());
}
