// SPDX-License-Identifier: Apache-2.0
// Output of arbitrary bytes, recordings, settings and command lines.
#include "rows/output.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "output/recording.hpp"
#include "output/replay.hpp"
#include "run/command_line.hpp"
#include "run/shared_options.hpp"
#include "screen/draw.hpp"
#include "screen/preferences.hpp"
#include "tests/fuzz/target.hpp"
#include "tools/cudadiff/comparison.hpp"
#include "tools/cudadiff/words.hpp"
#include "tools/cudatop/replay.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace gpusnoop;

namespace {

constexpr Column columns[] = {{"NAME", "name", Unit::text, 8},   {"NUMBER", "number", Unit::count, 8},
                              {"RATE", "rate", Unit::rate, 8},   {"BYTES", "bytes", Unit::bytes, 8},
                              {"SHAPE", "shape", Unit::dim3, 8}, {"ADDRESS", "address", Unit::hex, 8},
                              {"TIME", "at", Unit::time, 8},     {"TOOK", "took_ns", Unit::ns_as_us}};

bool is_valid(std::string_view text)
{
    for (size_t length = 0; !text.empty(); text.remove_prefix(length))
        if (length = first_code_point(text).length; length == 0)
            return false;
    return true;
}

bool steers(std::string_view text)
{
    for (; !text.empty(); text.remove_prefix(std::max<size_t>(first_code_point(text).length, 1)))
        if (const CodePoint c = first_code_point(text); c.length && steers_terminal(c.code) && c.code != '\n')
            return true;
    return false;
}

// Standard output, as an empty file.
const Fd& empty_stdout()
{
    static const Fd file = [] {
        Fd made = file_with("");
        dup2(made.get(), STDOUT_FILENO);
        return made;
    }();
    expect(ftruncate(file.get(), 0) == 0 && lseek(file.get(), 0, SEEK_SET) == 0, "stdout is a file");
    return file;
}

std::string written_to(const Fd& file)
{
    std::string text(static_cast<size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
    expect(pread(file.get(), text.data(), text.size(), 0) == std::ssize(text), "stdout can be read");
    return text;
}

// The text that an output writes to stdout.
std::string written(std::unique_ptr<Output> output, const Row& row, const std::vector<std::string>& below)
{
    const Fd& file = empty_stdout();
    output->start("fuzz", std::get<std::string>(row[0]), std::nullopt);
    output->attached(1, 1, std::get<std::string>(row[0]), below);
    output->begin_table(columns, 1'700'000'000'000'000'000, 1);
    output->row(columns, row, below);
    output->event(columns, row, below);
    Histogram histogram;
    histogram.add(1, 1);
    const std::pair<std::string_view, Cell> fields[] = {{"name", row[0]}};
    output->histogram(std::get<std::string>(row[0]), "usecs", histogram, fields, 0);
    output->end(1);
    output->flush();
    return written_to(file);
}

void check_json(const std::string& text, const std::string& name, const std::vector<std::string>& below)
{
    unsigned lines = 0, rows = 0;
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1, lines++) {
        end = text.find('\n', at);
        const auto object = nlohmann::json::parse(text.begin() + at, text.begin() + end); // throws if it is not JSON
        if (object["type"] != "row")
            continue;
        rows++;
        expect(!is_valid(name) || object["name"] == name, "valid names do not change");
        expect(object.value("frames", std::vector<std::string>()).size() == below.size(), "no frames are lost");
    }
    expect(lines == 6 && rows == 1, "each record is one line");
}

} // namespace

// Text and JSON output of arbitrary bytes from traced processes.
TARGET(output)
{
    Parts parts(input);
    const auto numbers = std::array{parts.number<uint64_t>(), parts.number<uint64_t>()};
    const auto rate = parts.number<double>();
    const std::string name(parts.text());
    std::vector<std::string> below;
    while (!parts.over())
        below.emplace_back(parts.text());
    const Row row{name,
                  numbers[0],
                  rate,
                  numbers[1],
                  Dim3{1, 2, static_cast<uint32_t>(numbers[0])},
                  numbers[1],
                  numbers[0] % (uint64_t{1} << 62),
                  numbers[1]};
    const std::string json = written(make_json_output(), row, below);
    expect(!steers(json) && is_valid(json), "JSON contains no terminal control codes");
    check_json(json, name, below);
    const std::string text = written(make_text_output(true), row, below);
    expect(!steers(text) && is_valid(text), "text contains no terminal control codes");
    std::string cut;
    const size_t width = numbers[0] % 64;
    expect(append_printable(cut, name, width) <= width, "a name fits in its column");
}

namespace {

constexpr std::string_view tools[] = {"cudalaunch", "cudamemcpy", "cudasync", "gpualloc", "cudagraph",
                                      "nvioctl",    "cudagap",    "ncclwait", "gpuspend"};
constexpr std::string_view keys[] = {"",          "pid",  "comm",      "thread", "pod,kernel",
                                     "container", "kind", "graph,api", "nothing"};
constexpr size_t moments_max = 20;
constexpr Size size{100, 40};

void expect_harmless(const std::exception& error)
{
    expect(printable(error.what()) == error.what(), "the error message is printable");
}

void expect_no_steering(std::string_view text)
{
    expect(!steers(text), "the output contains no terminal control codes");
}

void show_tables(const Options& options, std::string_view tool, std::string_view by)
{
    const Fd& out = empty_stdout();
    ReplayView view;
    if (!by.empty())
        view.by = by;
    view.adds_up = tool != "cudagap" && tool != "ncclwait";
    try {
        replay_tables(tool, view, options);
    } catch (const Error& error) {
        expect_harmless(error);
    } catch (const UsageError& error) {
        expect_harmless(error);
    }
    expect_no_steering(written_to(out));
}

void show_screens(const std::string& file)
{
    try {
        const Moments moments(std::span(&file, 1), "cudatop");
        const std::vector<TopColumn> shown = cudatop::replayed_columns(moments, {}, true);
        std::string open;
        for (const Moment& moment : std::span(moments.all()).first(std::min(moments.all().size(), moments_max))) {
            const Snapshot snapshot = cudatop::replayed(moment, shown, open);
            for (const TopRow& row : snapshot.rows)
                expect(row.cells.size() == shown.size(), "a row has a cell for each column");
            ScreenState state{ScreenOptions()};
            state.size = size;
            clamp(state, snapshot);
            Canvas canvas(size.columns, size.lines);
            draw(canvas, state, snapshot);
            for (int y = 0; y < size.lines; y++)
                expect_no_steering(canvas.line_text(y));
            open = snapshot.rows.empty() ? "" : snapshot.rows.front().id;
        }
    } catch (const Error& error) {
        expect_harmless(error);
    }
}

} // namespace

// Input: two bytes that choose the tool and the options, then the recording.
// Replay of an untrusted recording: as tables with any options, and on cudatop's screen.
TARGET(replayed)
{
    Parts parts(input);
    const auto tool = parts.number<uint8_t>(), flags = parts.number<uint8_t>();
    const Folder folder;
    folder.write("recording", parts.text(input.size()));
    const WarningRedirect redirect(
        [](const std::string& text) { expect(printable(text) == text, "warnings are printable"); });
    Options options;
    options.replay = folder.path() + "/recording";
    if (flags & 1)
        options.interval = std::chrono::seconds(flags & 2 ? 60 : 1);
    options.timestamps = flags & 4;
    show_tables(options, tools[tool % std::size(tools)], keys[(flags >> 3) % std::size(keys)]);
    show_screens(options.replay);
}

using namespace gpusnoop::cudadiff;

// cudadiff on an untrusted recording.
TARGET(recording)
{
    const Folder folder;
    folder.write("recording", input);
    const std::string files[] = {folder.path() + "/recording"};
    try {
        Side side(Group::process);
        side.read(files);
        const Comparison itself = compare(side, side, {});
        for (const Compared& row : itself.rows)
            expect(!row.change.significant && row.change.difference == 0, "a recording does not differ from itself");
        expect(summary(itself, {}).size() < 1000, "the summary is bounded");
    } catch (const Error& error) {
        expect(printable(error.what()) == error.what(), "the error message is printable");
    }
}

// Saved screen settings, possibly edited by hand or damaged.
TARGET(preferences)
{
    try {
        const Preferences found = preferences_in(input);
        expect(!found.columns || !found.columns->shown.empty(), "at least one column is shown");
        expect(!found.interval || interval_of(std::chrono::duration<double>(*found.interval).count()),
               "the interval is valid");
        expect(preferences_in(preferences_text(found)) == found, "the settings survive a round trip");
    } catch (const Error& error) {
        expect(std::string_view(error.what()).size() < 200, "the error message is short");
    }
}

// Shared options, parsed from arbitrary arguments (scripts may pass on untrusted ones). A newline ends each argument.
TARGET(command_line)
{
    constexpr std::string_view ways[] = {"perf", "session"};
    std::vector<std::string> words{"fuzz"};
    for (; !input.empty() && words.size() < 100; input.remove_prefix(std::min(words.back().size() + 1, input.size())))
        words.emplace_back(input.substr(0, std::min(input.find('\n'), input.find('\0'))));
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    try {
        CommandLine line("fuzz", "summary", "examples");
        Options o;
        add_shared_options(line, o, ways, "");
        line.parse(static_cast<int>(words.size()), arguments.data());
        check_shared_options(o);
        for (const pid_t pid : o.pids)
            expect(pid > 0, "pids are positive");
        expect(o.tid >= 0 && o.comm.size() <= 15, "tid and comm are in range");
        for (const auto& time : {o.interval, o.duration})
            expect(!time || *time > std::chrono::nanoseconds(0), "times are positive");
        expect(o.ring_mb > 0 && (o.ring_mb & (o.ring_mb - 1)) == 0, "ring size is a power of two");
    } catch (const UsageError& error) {
        expect(*error.what(), "the error has a message");
    } catch (const Answer& answer) {
        expect(!answer.text.empty(), "the answer is not empty");
    }
}
