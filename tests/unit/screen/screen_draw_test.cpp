// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "screen/save.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/output/captured.hpp"
#include "tests/unit/screen/screen_fixture.hpp"

#include <sys/stat.h>

using namespace gpusnoop;
using captured::json;

TEST_CASE("a screen of 80x24", "[screen]")
{
    const captured::Zone zone("UTC");
    CHECK(Stage().text() == R"(cudatop 10:00:00  by pid  every 1.0s  rows 6  columns 4-9/12
GPU0 [||||  45%] [||  12.0G/80.0G] 350W  GPU1 [          -] [|||    12.0G/80.0G]
launches/s 2100.0  processes 6  probes 120/120  lost 0  own cost 1.2% of a core
blind 3 files
    PID USER     COMM           ▼LAUNCH/s  GRAPH/s   H2D/s   D2H/s    LIVE SYNC%
   1005 alice    evil\x1B[31m\x+    600.0        -   95.0M   20.0K    1.0G  38.0
   1004 bob      訓練器             500.0        -   96.0M   16.0K    1.0G  11.0
   1003 alice    blocked            400.0        -   97.0M   12.0K    1.0G  19.0
   1002 bob      leaker             300.0        -   98.0M    8.0K    1.0G  55.0
   1001 alice    copier             200.0        -   99.0M    4.0K    1.0G  86.0
   1000 bob      trainer            100.0     12.5  100.0M       0    1.0G  83.0











sum of 6                           2100.0        -       -       -       -     -
?Help qQuit EnterOpen !Trouble sSort /Filter bBy tTree cColumns SpacePause
)");
}

TEST_CASE("a small screen", "[screen]")
{
    const captured::Zone zone("UTC");
    Stage stage({40, 10});
    stage.press(key::end);
    CHECK(stage.text() == R"(cudatop 10:00:00  by pid  every 1.0s  r+
GPU0 [|||||||||||           45%] 350W +1
launches/s 2100.0  processes 6
probes 120/120  lost 0
    PID USER     COMM                  >
   1002 bob      leaker
   1001 alice    copier
   1000 bob      trainer
sum of 6
?Help qQuit EnterOpen !Trouble sSort
)");
}

TEST_CASE("a large screen has all columns", "[screen]")
{
    const captured::Zone zone("UTC");
    const auto lines = Stage({200, 50}).lines();
    CHECK(lines.size() == 50);
    CHECK(
        lines[1] ==
        R"(GPU0 NVIDIA H100 80GB HB+ [|||||||||||          45%] [||||||                      12.0G/80.0G] 350W  GPU1 NVIDIA H100 80GB HB+ [                         -] [||||||                         12.0G/80.0G])");
    CHECK(
        lines[3] ==
        R"(    PID USER     COMM                ▼LAUNCH/s  GRAPH/s   H2D/s   D2H/s    LIVE SYNC% P99(us)  ERR/s  SM%*)");
    CHECK(
        lines[4] ==
        R"(   1005 alice    evil\x1B[31m\x0Aname    600.0        -   95.0M   20.0K    1.0G  38.0       -    0.0   n/a)");
}

TEST_CASE("the bar of a GPU names its processes if there is room", "[screen]")
{
    GpuState gpu = Stage().snapshot.gpus.at(0);
    gpu.users = "trainer, solver +2";
    const auto line = [&](int columns) {
        Canvas canvas(columns, 1);
        draw_gpu(canvas, {0, 0, columns, 1}, gpu);
        return canvas.line_text(0);
    };
    CHECK(line(100) ==
          "GPU0 NVIDIA H100 80GB HB+ [||||||||      45%] [||||             12.0G/80.0G] trainer, solver +2 350W");
    CHECK(line(80) == "GPU0 NVIDIA H100 80GB HB+ [||||  45%] [||   12.0G/80.0G] trainer, solver +2 350W");
    CHECK(line(60) == "GPU0 [|||||  45%] [||   12.0G/80.0G] trainer, solver +2 350W");
    CHECK(line(39) == "GPU0 [||||  45%] [||  12.0G/80.0G] 350W");
    gpu.users = "a\x1b[31mb"; // a process may have such a name
    CHECK(line(60).find('\x1b') == std::string::npos);
}

TEST_CASE("tiny screens show rows", "[screen]")
{
    CHECK(Stage({1, 1}).text() == "+\n");
    CHECK(Stage({7, 1}).text() == "   1005\n");
    CHECK(Stage({7, 2}).text() == "    PID\n   1005\n");
}

TEST_CASE("the page of an open row", "[screen]")
{
    Stage stage;
    for (int i = 0; i < 40; ++i)
        stage.next();
    stage.after(key::end, key::enter);
    stage.state.plotted = "sync_percent";
    stage.snapshot.detail = scene::detail("1000", 1);
    CHECK(stage.text() == R"(1000 bob trainer
SYNC% now 66.0, at most 89.0 in the last 41 s
   89.0                                                    ⢰⣿⣿⣶⣄          ⢠⣶⣿⣿⣦⡀
                                                           ⢸⣿⣿⣿⣿⣦        ⣴⣿⣿⣿⣿⣿⣿
                                                           ⢸⣿⣿⣿⣿⣿⣷⡄    ⢠⣾⣿⣿⣿⣿⣿⣿⣿
      0                                                    ⢸⣿⣿⣿⣿⣿⣿⣿⣶⣤⣤⣶⣿⣿⣿⣿⣿⣿⣿⣿⣿
                                                         -41s                now
kernels of 1000
KERNEL                            LAUNCHES
void kernel_0<float>(float*, int)      301
void kernel_1<float>(float*, int)      201
void kernel_2<float>(float*, int)      101

copies by size
     bytes               : count    distribution
        16 -> 31         : 86       |************                            |
        32 -> 63         : 220      |******************************          |
        64 -> 127        : 284      |****************************************|





EscBack Up/DownScroll Left/RightHistory wSave ?Help
)");
    stage.state.glyphs = Glyphs::ascii;
    CHECK(stage.text().find("\u28ff") == std::string::npos);
    CHECK(stage.shows(":::"));
}

TEST_CASE("alarms, headers, the selection, unknown values and zeros have their styles", "[screen]")
{
    Stage stage;
    Canvas canvas(80, 24);
    draw(canvas, stage.state, stage.snapshot);
    const auto style_of = [&](int y, std::string_view text) {
        const auto x = canvas.line_text(y).find(text);
        REQUIRE(x != std::string::npos);
        return canvas.line(y)[x].style;
    };
    CHECK(style_of(3, "3 files") == Style::alarm);
    CHECK(style_of(4, "LAUNCH/s") == Style::sorted);
    CHECK(style_of(4, "COMM") == Style::header);
    CHECK(style_of(5, "1005") == Style::selected);
    CHECK(style_of(7, "-") == Style::dim);
    CHECK(style_of(10, "83.0") == Style::plain);
    CHECK(style_of(10, "0    1.0G") == Style::dim);
    CHECK(style_of(22, "sum of 6") == Style::total);
}

TEST_CASE("a saved screen", "[screen]")
{
    const captured::Zone zone("UTC");
    const Folder folder;
    Stage stage({40, 10});
    stage.cast.rows = 60;
    stage.next();
    save_screen(folder.file("a.txt"), stage.state, stage.snapshot);
    const std::string text = contents(folder.file("a.txt"));
    CHECK(text.find("   1000 bob      trainer") != std::string::npos); // all rows
    CHECK(text.find("SM%*") != std::string::npos);                     // all columns
    CHECK(text.find("own cost 1.2% of a core") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
    struct stat info {};
    REQUIRE(::stat(folder.file("a.txt").c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0600);

    save_screen(folder.file("a.json"), stage.state, stage.snapshot);
    const std::string saved = contents(folder.file("a.json"));
    const auto row = json::parse(saved.substr(0, saved.find('\n')));
    CHECK(row["type"] == "row");
    CHECK(row["pid"] == 1059);
    CHECK(row["interval_ns"] == 1'000'000'000);
    CHECK(row["time"] == "2026-01-01T10:00:01.000000+00:00");
    CHECK_FALSE(row.contains("sm_percent")); // unknown
}

TEST_CASE("saving a screen overwrites no file and follows no symbolic link", "[screen]")
{
    const Folder folder;
    const Stage stage;
    folder.file("there", "mine");
    std::filesystem::create_symlink(folder.file("elsewhere"), folder.file("link"));
    for (const char* name : {"there", "link", "no/such/folder"})
        CHECK_THROWS_AS(save_screen(folder.file(name), stage.state, stage.snapshot), Error);
    CHECK(contents(folder.file("there")) == "mine");
    CHECK_FALSE(std::filesystem::exists(folder.file("elsewhere")));
}

TEST_CASE("problems are listed above the table, worst first", "[screen]")
{
    Stage stage({80, 24}, {.sort = "pid"});
    const auto trouble = [](int severity, std::string mark, std::string who, std::string words, std::string row) {
        return Trouble{severity, std::move(mark), std::move(who), std::move(words), "it is so", "cudasync -p 1",
                       "",       {std::move(row)}};
    };
    stage.snapshot.troubles = {
        trouble(3, "!!", "solver 1003", "waiting for the GPU for 12 s; no launches since", "1003")};
    CHECK(stage.lines()[4] == "!! solver 1003 waiting for the GPU for 12 s; no launches since");
    CHECK(stage.lines()[5].ends_with("SYNC%"));
    for (const char* name : {"loader 1001", "a\x1b[31mb 1002", "poller 1004", "notebook 1005"})
        stage.snapshot.troubles->push_back(trouble(2, "!", name, "copies too much\nof it", "1001"));
    CHECK(stage.lines()[4].starts_with("!! solver 1003     waiting for the GPU for 12 s"));
    CHECK(stage.lines()[5] == "!  loader 1001     copies too much\\x0Aof it");
    CHECK(stage.lines()[6].starts_with("!  a\\x1B[31mb 1002 copies"));
    CHECK(stage.lines()[6].ends_with(" +2 (!)"));
    CHECK(stage.after(U"!").shows("notebook 1005"));
    CHECK(stage.shows("next: cudasync -p 1"));
    CHECK(stage.shows("rule: it is so"));
    stage.press(key::escape);
    stage.snapshot.troubles->clear();
    CHECK(stage.lines()[4] == "No problem found (host side only).");
    stage.snapshot.troubles.reset();
    CHECK(stage.lines()[4].ends_with("SYNC%"));
}

TEST_CASE("a severity column sorts rows with problems first, and the other rows by the secondary column", "[screen]")
{
    Stage stage({}, {.sort = "comm", .then = "launches_per_second"});
    stage.snapshot.columns[2].by_severity = true;
    stage.snapshot.rows[1].severity = 1;
    stage.snapshot.rows[3].severity = 3;
    stage.snapshot.rows[4].severity = 1;
    CHECK(stage.order() == "1003 1004 1001 1005 1002 1000 ");
    CHECK(stage.after(U"r").order().ends_with(" 1003 "));
    CHECK(stage.after(U">").order() != "1003 1004 1001 1005 1002 1000 "); // other columns ignore the severity
}

TEST_CASE("the sort column has a mark, with and without UTF-8", "[screen]")
{
    Stage stage;
    CHECK(stage.shows("▼LAUNCH/s"));
    CHECK(stage.after(U"r").shows("▲LAUNCH/s"));
    CHECK(stage.after(U"<").shows("COMM▲"));
    CHECK(stage.lines().back() == "COMM: Name of the process.");
    stage.state.now += 10;
    CHECK(stage.lines().back().starts_with("?Help"));
    stage.state.glyphs = Glyphs::ascii;
    CHECK(stage.shows("COMM^"));
}

TEST_CASE("the title shows the range of visible rows, and the sum line the number of summed rows", "[screen]")
{
    Stage stage;
    stage.cast.rows = 68;
    stage.next();
    CHECK(stage.shows("rows 1-17 of 68 "));
    CHECK(stage.shows("\nsum of 68 "));
    CHECK(stage.after(key::end).shows("rows 52-68 of 68 "));
    CHECK(stage.after(U"/leak").shows("rows 1/68 "));
    CHECK(stage.shows("\nsum of 1 of 68 "));
}

TEST_CASE("the row for processes without an owner has a name, and is last", "[screen]")
{
    Stage stage({120, 40});
    stage.snapshot.rows[2].none = "(no user)";
    stage.snapshot.rows[2].cells[1] = Cell();
    CHECK(stage.order().ends_with(" 1002 "));
    CHECK(stage.shows("   1002 (no user) leaker"));
    CHECK(stage.after(U"r").order().ends_with(" 1002 "));
}

TEST_CASE("a trend column plots the history of the sort column in each row", "[screen]")
{
    Stage stage({120, 40});
    for (int i = 0; i < 12; ++i)
        stage.next();
    stage.snapshot.columns[3].trend = true;
    stage.state.shown.insert(stage.state.shown.begin() + 3, "pod");
    stage.state.arrangement.sort = "sync_percent";
    CHECK(stage.shows("copier                    ⢸⣿⣶⣦⣄⣀⣀ "));
    stage.state.arrangement.sort = "comm"; // text, so the secondary column is plotted
    stage.state.arrangement.then = "launches_per_second";
    CHECK(stage.shows("copier                    ⢸⣿⣿⣿⣿⣿⣿ "));
    stage.state.glyphs = Glyphs::ascii;
    CHECK(stage.shows("copier               :::::::::::: "));
}
