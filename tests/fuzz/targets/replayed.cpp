// SPDX-License-Identifier: Apache-2.0
// Replay of an untrusted recording: as tables with any options, and on cudatop's screen.
#include "base/error.hpp"
#include "base/text.hpp"
#include "output/recording.hpp"
#include "output/replay.hpp"
#include "screen/draw.hpp"
#include "tests/fuzz/target.hpp"
#include "tools/cudatop/replay.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <sys/mman.h>
#include <unistd.h>

using namespace gpusnoop;

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
    for (; !text.empty(); text.remove_prefix(std::max<size_t>(first_code_point(text).length, 1)))
        if (const CodePoint c = first_code_point(text); c.length)
            expect(!steers_terminal(c.code) || c.code == '\n', "the output contains no terminal control codes");
}

// Tables go to stdout.
const Fd& standard_output()
{
    static const Fd file = [] {
        Fd made = file_with("");
        dup2(made.get(), STDOUT_FILENO);
        return made;
    }();
    return file;
}

void show_tables(const Options& options, std::string_view tool, std::string_view by)
{
    const Fd& out = standard_output();
    expect(ftruncate(out.get(), 0) == 0 && lseek(out.get(), 0, SEEK_SET) == 0, "stdout is a file");
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
    std::string text(static_cast<size_t>(lseek(out.get(), 0, SEEK_END)), '\0');
    expect(pread(out.get(), text.data(), text.size(), 0) == std::ssize(text), "stdout can be read");
    expect_no_steering(text);
}

void show_screens(const std::string& file)
{
    try {
        const Moments moments(std::span(&file, 1), "cudatop");
        const std::vector<TopColumn> columns = cudatop::replayed_columns(moments, {}, true);
        std::string open;
        for (const Moment& moment : std::span(moments.all()).first(std::min(moments.all().size(), moments_max))) {
            const Snapshot snapshot = cudatop::replayed(moment, columns, open);
            for (const TopRow& row : snapshot.rows)
                expect(row.cells.size() == columns.size(), "a row has a cell for each column");
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
void fuzz(std::string_view input)
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
