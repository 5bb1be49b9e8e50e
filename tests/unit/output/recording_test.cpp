// SPDX-License-Identifier: Apache-2.0
// Recordings: writing, rotation, and reading of truncated, damaged and hostile files.
#include "base/clock.hpp"
#include "output/recording.hpp"
#include "tests/unit/base/error_of.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/base/small_files.hpp"
#include "tests/unit/output/captured.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace gpusnoop;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<Output> recorded(std::unique_ptr<Output> shown, const std::string& path)
{
    std::vector<SideOutput> sides;
    sides.push_back(make_recorded_output(std::make_unique<RecordingFile>(path, 1 << 30)));
    return make_output_with_sides(std::move(shown), std::move(sides));
}

std::vector<std::string> lines_of(const std::string& path, Damage* damage = nullptr)
{
    std::vector<std::string> all;
    RecordedLines lines(path);
    while (const auto line = lines.next())
        all.emplace_back(*line);
    if (damage)
        *damage = lines.damage();
    return all;
}

// Records the first line of a run, and then `lines` rows.
void record(const std::string& path, int lines, uint64_t max = 1 << 30)
{
    RecordingFile file(path, max);
    file.text = "{\"type\":\"start\",\"schema\":1}\n";
    file.flush();
    for (int i = 0; i < lines; i++) {
        file.text = "{\"type\":\"row\",\"n\":" + std::to_string(i) + "}\n";
        file.flush();
    }
}

std::vector<std::pair<std::string, double>> tools_and_numbers(const std::vector<std::string>& files,
                                                              Unread* unread = nullptr)
{
    std::vector<std::pair<std::string, double>> all;
    const Unread rest = read_recording(files, [&](const RecordedRun& run, const Record& record, std::string_view) {
        all.emplace_back(run.tool, record.number("n").value_or(-1));
    });
    if (unread)
        *unread = rest;
    return all;
}

} // namespace

TEST_CASE("a recording, compressed or not, keeps the lines of all runs")
{
    const Folder folder;
    for (const std::string& path : {folder.file("a.json"), folder.file("a.json.gz"), folder.file("a.json.zst")}) {
        record(path, 2);
        record(path, 1);
        Damage damage;
        CHECK(lines_of(path, &damage) == std::vector<std::string>{R"({"type":"start","schema":1})",
                                                                  R"({"type":"row","n":0})", R"({"type":"row","n":1})",
                                                                  R"({"type":"start","schema":1})",
                                                                  R"({"type":"row","n":0})"});
        CHECK(damage.bytes == 0);
        CHECK_FALSE(damage.cut_off);
    }
    CHECK(contents(folder.file("a.json.gz")).starts_with("\x1f\x8b"));
    CHECK(contents(folder.file("a.json.zst")).starts_with("\x28\xb5\x2f\xfd"));
}

TEST_CASE("a compressed recording that a killed run cut off keeps its complete lines, and the next run appends to it")
{
    const Folder folder;
    for (const std::string end : {".gz", ".zst"}) {
        const std::string path = folder.file("a" + end), cut_path = folder.file("cut" + end);
        record(path, 50);
        const std::string whole = contents(path);
        for (const size_t lost : {1, 9, 12, 40, 100}) {
            INFO(end << " without " << lost);
            Damage damage;
            const size_t before =
                lines_of(folder.file("cut" + end, whole.substr(0, whole.size() - lost)), &damage).size();
            CHECK(damage.cut_off);
            CHECK(before >= 35);
            record(cut_path, 2);
            CHECK(lines_of(cut_path, &damage).size() == before + 3);
            CHECK_FALSE(damage.cut_off);
        }
    }
}

TEST_CASE("a truncated line does not damage the next run's first line")
{
    const Folder folder;
    const std::string path = folder.file("a", "{\"type\":\"row\"}\n{\"type\":\"r");
    record(path, 1);
    Unread unread;
    CHECK(tools_and_numbers({path}, &unread).size() == 2);
    CHECK(unread.not_json == 1);
}

TEST_CASE("a recording stays within its size limit, and each of its files begins with the run's first line")
{
    const Folder folder;
    for (const std::string name : {"a.json", "a.json.gz", "a.json.zst"}) {
        const std::string path = folder.file(name);
        const captured::Written result =
            captured::written(make_json_output(), [&](Output&) { record(path, 5000, 20000); });
        CHECK(result.err.find("--record-max") != result.err.npos);
        CHECK(fs::file_size(path) + fs::file_size(path + ".1") <= 20000 + 100);
        for (const std::string& file : {path + ".1", path})
            CHECK(lines_of(file).front() == R"({"type":"start","schema":1})");
        CHECK(lines_of(path).back() == R"({"type":"row","n":4999})");
    }
}

TEST_CASE("the new file after a rotation repeats the table line")
{
    const Folder folder;
    const std::string path = folder.file("a.json"), table = R"({"type":"table","columns":["A a count 7"]})";
    captured::written(make_json_output(), [&](Output&) {
        RecordingFile file(path, 2000);
        file.text = R"({"type":"start","schema":1})"
                    "\n" +
                    table + "\n";
        for (int i = 0; i < 100; i++, file.flush())
            file.text += R"({"type":"row","n":1})"
                         "\n";
    });
    CHECK(lines_of(path)[1] == table);
}

TEST_CASE("only files that are recordings are written to")
{
    const Folder folder;
    folder.file("other", "int main() {}\n");
    folder.file("a.json.1", "int main() {}\n"); // rotation of a.json would replace this file
    for (const char* name : {"other", "a.json"})
        CHECK_THROWS_AS(RecordingFile(folder.file(name), 1 << 20), Error);
    CHECK(contents(folder.file("a.json.1")) == "int main() {}\n");
    fs::remove(folder.file("a.json.1"));
    record(folder.file("a.json"), 1);
    fs::rename(folder.file("a.json"), folder.file("a.json.gz")); // not compressed, despite its name
    CHECK_THROWS_AS(RecordingFile(folder.file("a.json.gz"), 1 << 20), Error);
    CHECK(contents(folder.file("other")) == "int main() {}\n");
}

TEST_CASE("a foreign file at FILE or FILE.1 ends the recording and is kept")
{
    const std::string theirs = "precious";
    for (const char* name : {"a.json.1", "a.json"}) {
        const Folder folder;
        std::optional<std::string> failure;
        const captured::Written result = captured::written(make_json_output(), [&](Output&) {
            RecordingFile file(folder.file("a.json"), 2000);
            file.text = "{\"type\":\"start\",\"schema\":1}\n";
            file.flush();
            fs::remove(folder.file(name));
            folder.file(name, theirs);
            for (int i = 0; i < 100; i++, file.flush())
                file.text = R"({"type":"row","n":1})"
                            "\n";
            failure = file.failure();
        });
        CHECK(contents(folder.file(name)) == theirs);
        REQUIRE(failure);
        CHECK(result.err.find(*failure) != result.err.npos);
    }
}

TEST_CASE("failing to write the end of a compressed recording is an error")
{
    const Folder folder;
    const std::string path = folder.file("a.json.gz");
    std::string why;
    captured::written(make_json_output(), [&](Output&) {
        auto file = std::make_unique<RecordingFile>(path, 1 << 20);
        RecordingFile& written = *file;
        const SideOutput side = make_recorded_output(std::move(file));
        written.text = "{\"type\":\"start\",\"schema\":1}\n";
        written.flush();
        const SmallFiles limit(fs::file_size(path));
        why = error_of([&] { side.check(); });
    });
    CHECK(why.find("is incomplete") != why.npos);
}

TEST_CASE("a full disk ends the recording, but not the output")
{
    const Folder folder;
    const SmallFiles limit(64 << 10); // the text output stays below this limit, the JSON recording exceeds it
    auto output = recorded(make_text_output(false), folder.file("a"));
    std::string why;
    const captured::Written result = captured::written(std::move(output), [&](Output& both) {
        both.start("cudatop", "1.0", {});
        for (int i = 0; i < 300; i++) {
            both.row(captured::columns, captured::full_row, {});
            both.flush();
        }
        why = error_of([&] { both.end(5); });
    });
    CHECK(std::ranges::count(result.out, '\n') >= 300);
    CHECK(why.find("is incomplete") != why.npos);
    CHECK(result.err.find(why) != result.err.npos);
}

TEST_CASE("the text output shows only some rows of a table, but the recording has all")
{
    const Folder folder;
    const Column columns[] = {{"N", "n"}};
    auto print = [&](Output& output) {
        output.begin_table(columns, captured::ten_o_clock, 1);
        for (size_t number = 0; number < 5; number++)
            if (Output* const place = output.place_of_row(number, 2))
                place->row(columns, {uint64_t{number}}, {});
    };
    const std::string path = folder.file("a");
    const captured::Written text = captured::written(recorded(make_text_output(false), path), [&](Output& output) {
        print(output);
        CHECK(output.for_people() != output.for_programs());
    });
    CHECK(text.out == "       N\n       0\n       1\n");
    CHECK(tools_and_numbers({path}).size() == 6);
    CHECK(captured::json_of(print).size() == 5);
    const captured::Written json = captured::written(recorded(make_json_output(), path), print);
    CHECK(std::ranges::count(json.out, '\n') == 5);
    CHECK(tools_and_numbers({path}).size() == 12);
}

TEST_CASE("each line has the keys of the run and a time; the first line also has the command line")
{
    const RunIdentity run = this_run();
    CHECK(run.run.size() == 12);
    CHECK(run.run == this_run().run);
    CHECK(run.boot_id.size() == 36);
    CHECK_FALSE(run.host.empty());
    CHECK_FALSE(run.command.empty());
    constexpr Loss lost{"events_lost", "events lost", 3};
    const Column pid{"PID", "pid", Unit::count}, time{"TIME", "time", Unit::time};
    const uint64_t before = clock_ns(CLOCK_REALTIME) - 7'000'000'000;
    std::istringstream lines(captured::written(make_json_output(run), [&](Output& output) {
                                 output.start("cudatop", "1.0", {});
                                 output.attached(1, 1, "session", {});
                                 output.begin_table(std::span(&pid, 1), before, 1);
                                 output.row(std::span(&pid, 1), {uint64_t{7}}, {});
                                 output.event(std::span(&time, 1), {before}, {});
                                 output.process(std::span(&pid, 1), {uint64_t{7}});
                                 output.histogram("", "usecs", Histogram(), {}, before);
                                 output.lost(std::span(&lost, 1));
                                 output.end(5);
                             }).out);
    std::vector<Record> all;
    double between = 0;
    for (std::string line; std::getline(lines, line);) {
        INFO(line);
        const auto record = Record::parse(line);
        REQUIRE(record);
        CHECK(record->text("run") == run.run);
        CHECK(record->text("host") == run.host);
        CHECK(record->text("boot_id") == run.boot_id);
        CHECK(record->text("tool") == "cudatop");
        CHECK(record->number("schema") == 1);
        const auto wall_ns = wall_ns_of(record->text("time")), clock_ns = record->number("monotonic_ns");
        REQUIRE((wall_ns && clock_ns));
        between = all.empty() ? *wall_ns - *clock_ns : between;
        CHECK(std::abs(*wall_ns - *clock_ns - between) < 1e9);
        all.push_back(*record);
    }
    REQUIRE(all.size() == 9);
    CHECK(all[0].text("command_line") == run.command);
    REQUIRE(all[2].texts("columns"));
    CHECK(lost_in(all[6]) == 0);
    CHECK(lost_in(all[7]) == 3);
}

TEST_CASE("a run whose first line is missing is identified by any of its lines")
{
    const Folder folder;
    const std::string rest =
        folder.file("rest", "{\"type\":\"row\",\"run\":\"a\",\"tool\":\"one\",\"schema\":1,\"n\":1}\n"
                            "{\"type\":\"row\",\"run\":\"b\",\"tool\":\"two\",\"schema\":2,\"n\":2}\n"
                            "{\"type\":\"row\",\"run\":\"a\",\"tool\":\"one\",\"schema\":1,\"n\":3}\n");
    CHECK(tools_and_numbers({rest}) == std::vector<std::pair<std::string, double>>{{"one", 1}, {"one", 3}});
}

TEST_CASE("interleaved runs are separated by their ids; runs without ids, by the order of lines")
{
    const Folder folder;
    const std::string mixed = folder.file("mixed", "{\"type\":\"start\",\"run\":\"a\",\"tool\":\"one\",\"schema\":1}\n"
                                                   "{\"type\":\"start\",\"run\":\"b\",\"tool\":\"two\",\"schema\":1}\n"
                                                   "{\"type\":\"row\",\"run\":\"a\",\"n\":1}\n"
                                                   "{\"type\":\"row\",\"run\":\"b\",\"n\":2}\n");
    CHECK(tools_and_numbers({mixed}) == std::vector<std::pair<std::string, double>>{{"one", 1}, {"two", 2}});
    const std::string ordered = folder.file("ordered", "{\"type\":\"row\",\"n\":0}\n"
                                                       "{\"type\":\"start\",\"tool\":\"one\",\"schema\":1}\n"
                                                       "{\"type\":\"row\",\"n\":1}\n"
                                                       "{\"type\":\"start\",\"tool\":\"two\",\"schema\":1}\n"
                                                       "{\"type\":\"row\",\"n\":2}\n"
                                                       "{\"type\":\"start\",\"tool\":\"new\",\"schema\":2}\n"
                                                       "{\"type\":\"row\",\"n\":3}\n");
    Unread unread;
    CHECK(tools_and_numbers({ordered, ordered}, &unread).size() == 6);
    CHECK(unread.other_schema == 2);
}

TEST_CASE("invalid lines are counted")
{
    const Folder folder;
    const std::string deep(100'000, '['), wide = "{\"type\":\"row\"" + [] {
        std::string keys;
        for (int i = 0; i < 1000; i++)
            keys += ",\"k" + std::to_string(i) + "\":1";
        return keys + "}";
    }();
    Unread unread;
    const std::string path =
        folder.file("a", deep + "\n" + "{\"a\":" + deep + "\n" + wide + "\n[1]\n1\nnull\n{\"n\":1e999}\n\n" +
                             std::string(3 << 20, 'x') + "\n{\"n\":7}\n\x01\xff\n{\"n\":");
    CHECK(tools_and_numbers({path}, &unread) == std::vector<std::pair<std::string, double>>{{"", 7}});
    CHECK(unread.not_json == 8);
    CHECK(unread.damage.long_lines == 1);
    CHECK(unread.damage.cut_off);
    CHECK_THROWS_AS(RecordedLines(folder.file("none")), Error);
    CHECK_THROWS_AS(lines_of(fs::path(path).parent_path()), Error);
}

TEST_CASE("a record has texts, numbers and grids")
{
    const auto record =
        Record::parse(R"({"type":"row","a":1.5,"grid":[2,3,4],"b":"x","deep":{"a":2,"c":[1]},"n":null,"t":true})");
    REQUIRE(record);
    CHECK(record->type() == "row");
    CHECK(record->number("a") == 1.5);
    CHECK(record->product("grid") == 24);
    CHECK(record->text("b") == "x");
    CHECK_FALSE(record->number("b"));
    CHECK_FALSE(record->number("c"));
    CHECK(record->number("t") == 1);
    CHECK(wall_ns_of("2026-01-01T10:00:00.500000+00:00") == 1767261600.5e9);
    CHECK(wall_ns_of("2026-01-01T10:00:00.500000-05:30") == 1767281400.5e9);
    for (const char* wrong : {"", "2026-01-01", "2026-01-01T10:00:00.500000Z+00:0", "2026-0x-01T10:00:00.500000+00:00"})
        CHECK_FALSE(wall_ns_of(wrong));
}
