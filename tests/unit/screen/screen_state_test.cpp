// SPDX-License-Identifier: Apache-2.0
#include "screen/list_view.hpp"
#include "tests/unit/screen/screen_fixture.hpp"

#include <algorithm>
#include <catch2/generators/catch_generators.hpp>
#include <csignal>
#include <random>

using namespace gpusnoop;
using namespace std::chrono_literals;

TEST_CASE("the selection follows its row", "[screen]")
{
    Stage stage;
    CHECK(stage.state.selected.empty()); // the first line, whatever it is
    stage.press(key::down);
    CHECK(stage.state.selected == "1004");
    stage.press(U"r");
    CHECK(stage.order() == "1000 1001 1002 1003 1004 1005 ");
    CHECK(stage.state.selected == "1004");
    stage.press(key::down);
    stage.press(key::down); // there are no more
    CHECK(stage.state.selected == "1005");
    stage.cast.rows = 3; // it ends
    stage.next();
    CHECK(stage.state.selected == "1002");
    stage.press(key::home);
    CHECK(stage.state.selected.empty());
    stage.cast.rows = 0;
    stage.next();
    for (Key key : std::initializer_list<Key>{key::up, key::down, key::page_down, key::end, key::enter})
        CHECK(stage.press(key).empty());
    CHECK(stage.shows("Nothing uses a GPU yet."));
}

TEST_CASE("pages and the end", "[screen]")
{
    Stage stage;
    stage.cast.rows = 100;
    stage.next();
    stage.press(key::page_down);
    CHECK(stage.state.first_row > 0);
    CHECK(stage.state.selected < "1099");
    stage.press(key::end);
    CHECK(stage.state.selected == "1000");
    CHECK(stage.lines()[stage.lines().size() - 3].starts_with("   1000"));
    stage.press(key::page_up);
    stage.press(key::home);
    CHECK(stage.state.first_row == 0);
}

TEST_CASE("sorting by another column, reversed, frozen", "[screen]")
{
    Stage stage;
    stage.press(U"<");
    CHECK(stage.state.arrangement.sort == "comm");
    CHECK(stage.state.arrangement.ascending); // names from A on
    stage.press(U">>>");
    CHECK(stage.state.arrangement.sort == "h2d_bytes_per_second");
    CHECK(stage.order() == "1000 1001 1002 1003 1004 1005 ");
    stage.press(U"f");
    stage.press(U"t"); // the tree is of the frozen order
    stage.press(U"t");
    stage.snapshot.rows[5].cells[6] = uint64_t{1} << 50;
    CHECK(stage.order() == "1000 1001 1002 1003 1004 1005 ");
    CHECK(stage.shows("FROZEN"));
    stage.press(U"f");
    CHECK(stage.order() == "1005 1000 1001 1002 1003 1004 ");
    for (int i = 0; i < 50; ++i)
        stage.press(U">");
    CHECK(stage.state.arrangement.sort == "sm_percent");
    CHECK(stage.shows("SM%*")); // it is scrolled to
}

TEST_CASE("choosing a column to sort by", "[screen]")
{
    Stage stage;
    stage.press(U"s");
    CHECK(stage.state.view == View::choose_sort);
    CHECK(stage.shows(" *  LAUNCH/s"));
    stage.press(key::down);
    stage.press(key::enter);
    CHECK(stage.state.arrangement.sort == "graph_launches_per_second");
    CHECK(stage.state.view == View::list);
    stage.press(U"s");
    stage.press(key::home);
    stage.press(key::escape);
    CHECK(stage.state.arrangement.sort == "graph_launches_per_second");
}

TEST_CASE("a filter shows while it is typed", "[screen]")
{
    Stage stage;
    stage.press(U"/l");
    CHECK(stage.order() == "1005 1003 1002 1001 "); // evil, alice, leaker, alice
    stage.press(U"eak");
    CHECK(stage.order() == "1002 ");
    CHECK(stage.shows("Filter: leak_"));
    stage.press(key::backspace);
    stage.press(key::enter);
    CHECK(stage.state.arrangement.filter == "lea");
    CHECK(stage.shows("Filter: lea (Esc clears)"));
    CHECK(stage.shows("rows 1/6"));
    stage.press(key::escape);
    CHECK(stage.state.arrangement.filter.empty());
    stage.press(U"/zzz");
    CHECK(stage.shows("No row matches the filter."));
    stage.press(key::escape);
    CHECK(stage.state.arrangement.filter.empty());
    stage.press(U"/\u8a13q");
    CHECK(stage.state.arrangement.filter == "\u8a13q"); // q quits nothing here
    stage.press(key::clear_line);
    CHECK(stage.state.arrangement.filter.empty());
}

TEST_CASE("the sum is that of the rows which are shown", "[screen]")
{
    Stage stage;
    const auto launches = [&] { return std::get<double>(sum_line(stage.snapshot, stage.state.arrangement)->cells[4]); };
    CHECK(launches() == 2100); // as the snapshot says
    stage.press(U"/leak");
    CHECK(launches() == 300);
    stage.press(U"zzz");
    CHECK(std::holds_alternative<std::monostate>(sum_line(stage.snapshot, stage.state.arrangement)->cells[4]));
    stage.press(key::escape);
    CHECK(launches() == 2100);
    stage.snapshot.totals.clear();
    CHECK_FALSE(sum_line(stage.snapshot, stage.state.arrangement));
}

TEST_CASE("a key that does nothing says so", "[screen]")
{
    Stage stage;
    stage.press(U"JJZ"); // what is typed at once may be a text that was pasted
    CHECK(stage.shows("no such key: J (? shows those that there are)"));
    CHECK(stage.state.messages.all().size() == 1);
    for (const std::u32string_view view : {U"", U"?", U"m", U"!", U"s", U"b", U"c", U"\r"}) {
        stage.press(view);
        stage.state.now += 10;
        stage.press(key::f9);
        CHECK(stage.state.messages.current(stage.state.now)->text == "no such key: F9 (? shows those that there are)");
        stage.press(key::escape);
    }
    const size_t told = stage.state.messages.all().size();
    stage.state.now += 10;
    for (const Key nothing : {Key{0}, Key{7}, Key{0x7f}, key_of({Click::press, 500, 0})})
        stage.press(nothing);
    CHECK(stage.state.messages.all().size() == told);
}

TEST_CASE("the mouse", "[screen]")
{
    Stage stage;
    const auto line_of = [&](std::string_view text) {
        const std::vector<std::string> lines = stage.lines();
        const auto is_it = [text](const std::string& line) { return line.find(text) != std::string::npos; };
        return static_cast<int>(std::ranges::find_if(lines, is_it) - lines.begin());
    };
    const auto click = [&](int x, int y) { return stage.press(key_of({Click::press, x, y})); };

    SECTION("a click selects a row, and the next one opens it")
    {
        CHECK(click(3, line_of("1003")).empty());
        CHECK(stage.state.selected == "1003");
        CHECK(stage.state.view == View::list);
        const std::vector<Action> actions = click(60, line_of("1003"));
        CHECK(stage.state.view == View::detail);
        REQUIRE(!actions.empty());
        CHECK(actions[0].text == "1003");
        click(3, 3);
        CHECK(stage.state.view == View::detail);
    }
    SECTION("on a header it sorts, and then reverses")
    {
        const int y = line_of("LAUNCH/s");
        const auto x = static_cast<int>(stage.lines()[static_cast<size_t>(y)].find("GRAPH/s"));
        click(x + 2, y);
        CHECK(stage.state.arrangement.sort == "graph_launches_per_second");
        CHECK_FALSE(stage.state.arrangement.ascending);
        click(x + 2, y);
        CHECK(stage.state.arrangement.ascending);
    }
    SECTION("the wheel selects other rows")
    {
        const std::string first = stage.order().substr(0, 4);
        stage.press(key_of({Click::wheel_down}));
        CHECK(stage.state.selected == stage.order().substr(15, 4));
        stage.press(key_of({Click::wheel_up}));
        CHECK(stage.state.selected == first);
    }
    SECTION("choices")
    {
        stage.press(U"b");
        click(3, 4);
        CHECK(stage.state.choice == 3);
        CHECK(click(3, 4)[0].text == "pod");
    }
    SECTION("nowhere, and with a prompt, it does nothing")
    {
        stage.press(U"/");
        click(3, line_of("1003"));
        CHECK(stage.state.selected.empty());
        stage.press(key::escape);
        for (int y = 0; y < 40; ++y)
            for (const int x : {0, 79, 4095})
                if (y < 3 || y > 20)
                    click(x, y);
        CHECK(stage.state.view == View::list);
    }
    SECTION("M gives it back to the terminal")
    {
        CHECK(stage.press(U"M")[0].kind == Action::mouse);
        CHECK_FALSE(stage.state.mouse);
    }
}

TEST_CASE("a signal is sent after a question, to one process", "[screen]")
{
    Stage stage;
    stage.press(U"K");
    CHECK(stage.state.prompt == Prompt::none); // rows that are not one process
    CHECK(stage.state.messages.all().size() == 1);
    for (TopRow& row : stage.snapshot.rows)
        row.process = {static_cast<uint32_t>(std::stoul(row.id)), 7};
    stage.state.selected = "1002";
    for (const std::u32string_view no : {U"n", U"\r", U"\033", U"K", U"q"}) {
        stage.press(U"K");
        CHECK(stage.shows("Send SIGTERM to 1002 bob leaker? y/N; 9: SIGKILL"));
        CHECK(stage.press(no).empty());
        CHECK(stage.state.prompt == Prompt::none);
    }
    const std::vector<Action> actions = stage.press(U"Ky");
    REQUIRE(actions.size() == 1);
    CHECK(actions[0].kind == Action::signal);
    CHECK(actions[0].process.pid == 1002);
    CHECK(actions[0].process.start_ns == 7);
    CHECK(actions[0].number == SIGTERM);
    stage.press(U"\r");
    CHECK(stage.press(U"K9")[0].number == SIGKILL);
    stage.snapshot.rows.clear(); // it has ended
    stage.press(U"K");
    CHECK(stage.state.prompt == Prompt::none);
}

TEST_CASE("typing takes the place of the name that a file is to have", "[screen]")
{
    Stage stage;
    stage.press(U"w");
    const std::string proposed = stage.state.input;
    CHECK(proposed.ends_with(".txt"));
    stage.press(U"a.json");
    CHECK(stage.state.input == "a.json");
    stage.press(key::escape);
    stage.press(U"w");
    stage.press(key::backspace);
    stage.press(U"T");
    CHECK(stage.state.input == proposed.substr(0, proposed.size() - 1) + "T");
}

TEST_CASE("searching", "[screen]")
{
    Stage stage;
    stage.press(U"\\alice");
    CHECK(stage.state.selected == "1005");
    stage.press(key::enter);
    stage.press(U"n");
    CHECK(stage.state.selected == "1003");
    stage.press(U"N");
    CHECK(stage.state.selected == "1005");
    stage.press(U"N");
    CHECK(stage.state.selected == "1001"); // round the end
    stage.press(U"\\nobody");
    stage.press(key::enter);
    stage.press(U"n");
    CHECK(stage.shows("no row contains 'nobody'"));
}

TEST_CASE("the interval", "[screen]")
{
    Stage stage;
    const auto actions = stage.press(U"+");
    REQUIRE(actions.size() == 1);
    CHECK(actions[0].kind == Action::interval);
    CHECK(stage.state.interval == 2s);
    for (int i = 0; i < 20; ++i)
        stage.press(U"-");
    CHECK(stage.state.interval == 100ms);
    CHECK(stage.press(U"-").empty());
    stage.press(U"d2.5");
    CHECK(stage.press(key::enter).size() == 1);
    CHECK(stage.state.interval == 2500ms);
    for (std::u32string_view bad : {U"d61", U"d0.05", U"d1x", U"dnan", U"d-1"}) {
        stage.press(bad);
        CHECK(stage.press(key::enter).empty());
        CHECK(stage.state.interval == 2500ms);
    }
    CHECK(stage.shows("an interval must be 0.1 to 60 seconds, not '61'"));
}

TEST_CASE("what rows stand for", "[screen]")
{
    Stage stage;
    auto actions = stage.press(U"3");
    REQUIRE(actions.size() == 2);
    CHECK((actions[0].kind == Action::by && actions[0].text == "container"));
    CHECK(actions[1].kind == Action::refresh);
    CHECK(stage.press(U"1").empty()); // it is so already
    stage.press(U"b");
    CHECK(stage.shows(" *  pid"));
    stage.press(key::end);
    actions = stage.press(key::enter);
    REQUIRE(actions.size() == 2);
    CHECK(actions[0].text == "device");
}

TEST_CASE("choosing columns and their order", "[screen]")
{
    Stage stage;
    CHECK_FALSE(stage.shows("POD"));
    stage.press(U"c");
    CHECK(stage.shows("[ ] POD"));
    CHECK(stage.shows("Launch latency. Needs --latency"));
    for (int i = 0; i < 12; ++i)
        stage.press(key::down);
    stage.press(U" ");
    CHECK(stage.shows("[x] POD"));
    for (int i = 0; i < 9; ++i)
        stage.press(U"<");
    stage.press(key::enter);
    CHECK(stage.state.shown[3] == "pod");
    CHECK(stage.lines()[4].find("POD") < stage.lines()[4].find("LAUNCH/s"));
    stage.press(U"c");
    for (int i = 0; i < 50; ++i)
        stage.press(U" "); // hides and shows the first one
    stage.press(key::escape);
    CHECK(stage.state.view == View::list);
}

TEST_CASE("a column that was not for people in some rows is shown in others", "[screen]")
{
    Stage stage;
    stage.state = ScreenState({.sort = "launches_per_second"});
    stage.snapshot.columns[0].column.in_text = false;
    clamp(stage.state, stage.snapshot);
    CHECK(stage.state.shown.front() == "user");
    stage.next();
    CHECK(stage.state.shown.front() == "pid");
}

TEST_CASE("where rows are sorted by a text, an opened one has the history of what they are sorted by then", "[screen]")
{
    Stage stage({}, {.sort = "comm", .then = "graph_launches_per_second"});
    stage.press(key::enter);
    CHECK(stage.state.plotted == "graph_launches_per_second");
}

TEST_CASE("a row is opened and closed", "[screen]")
{
    Stage stage;
    stage.press(key::down);
    auto actions = stage.press(key::enter);
    REQUIRE(actions.size() == 2);
    CHECK((actions[0].kind == Action::open && actions[0].text == "1004"));
    CHECK(stage.state.plotted == "launches_per_second");
    CHECK(stage.shows("Nothing has been counted for it yet."));
    stage.snapshot.detail = scene::detail("1004", 0);
    CHECK(stage.shows("void kernel_0<float>(float*, int)"));
    CHECK(stage.shows("copies by size"));
    stage.press(U"h");
    CHECK(stage.state.plotted == "graph_launches_per_second");
    stage.press(key::left);
    stage.press(key::left);
    CHECK(stage.state.plotted == "device_memory_bytes"); // round the end; columns that are not shown have one, too
    stage.snapshot.detail_of = "1003";
    CHECK_FALSE(stage.shows("void kernel_0<float>(float*, int)")); // of another row
    stage.cast.rows = 2;
    stage.next();
    CHECK(stage.shows("1004 bob \u8a13\u7df4\u5668 (gone)"));
    actions = stage.press(key::escape);
    REQUIRE(actions.size() == 1);
    CHECK((actions[0].kind == Action::open && actions[0].text.empty()));
    CHECK(stage.state.view == View::list);
}

TEST_CASE("the help has every key and every column", "[screen]")
{
    Stage stage({100, 80});
    stage.press(U"?");
    CHECK(stage.shows("Ctrl-L"));
    for (const TopColumn& column : stage.snapshot.columns)
        CHECK(stage.shows(column.about));
    stage.press(key::escape);
    stage.press(U"h");
    CHECK(stage.state.view == View::help);
    CHECK(stage.press(U"q").empty());
    CHECK(stage.press(U"q").at(0).kind == Action::quit);
    CHECK(stage.press(key::f10).at(0).kind == Action::quit);
}

TEST_CASE("messages are shown for a while and kept", "[screen]")
{
    Stage stage;
    stage.state.messages.add("first", 0);
    stage.state.messages.add("second\x1b[2J", 0);
    stage.state.messages.add("second\x1b[2J", 1);
    CHECK(stage.lines().back() == "first");
    stage.state.now = 5.5;
    CHECK(stage.lines().back() == "second\\x1B[2J");
    stage.state.now = 60;
    CHECK(stage.lines().back().starts_with("?Help"));
    stage.press(U"m");
    CHECK(stage.shows("second\\x1B[2J (2 times)"));
    for (int i = 0; i < 1000; ++i)
        stage.state.messages.add(std::to_string(i), 60);
    CHECK(stage.state.messages.all().size() == 200);
}

TEST_CASE("the tree has a heading per pod", "[screen]")
{
    Stage stage;
    stage.press(U"t");
    const auto lines = stage.lines();
    CHECK(lines[5].starts_with("- pod-1 (2)"));
    CHECK(lines[6].starts_with("├─"));
    CHECK(lines[7].starts_with("└─"));
    CHECK(lines[8].starts_with("- pod-0 (2)"));
    CHECK(lines[11].starts_with("- (none) (2)")); // although its first row is before all others
    CHECK(lines[12].starts_with("├─    1005"));
}

TEST_CASE("a branch of the tree has the sums of its rows, and is folded", "[screen]")
{
    Stage stage;
    stage.snapshot.columns[4].adds = true;
    stage.press(U"t");
    const auto shown = [&] { return list_lines(stage.state, stage.snapshot).size(); };
    const size_t all = shown();
    const ListLine heading = list_lines(stage.state, stage.snapshot).front();
    CHECK(std::get<double>(heading.sum[4]) == sort_value(list_lines(stage.state, stage.snapshot)[1].row->cells[4]) +
                                                  sort_value(list_lines(stage.state, stage.snapshot)[2].row->cells[4]));
    stage.press(key::home);
    stage.press(key::left); // to the heading
    CHECK(stage.state.selected == heading.id());
    stage.press(U"-");
    CHECK(shown() == all - 2);
    CHECK(stage.shows("+ pod-1 (2)"));
    CHECK(stage.state.selected == heading.id());
    stage.press(key::enter);
    CHECK(shown() == all);
    CHECK(stage.state.view == View::list);
    stage.press(U"*");
    CHECK(shown() == 3);
    stage.press(key::down);
    stage.press(U"*");
    CHECK(shown() == all);
    CHECK(stage.state.interval == std::chrono::seconds(1));
}

TEST_CASE("Enter on a pod or a device lists its processes, Esc leads back to it", "[screen]")
{
    Stage stage;
    const std::string by = GENERATE("pod", "device");
    stage.snapshot.by = by;
    stage.press(key::down);
    const std::string pod = stage.state.selected;
    auto actions = stage.press(key::enter);
    REQUIRE(actions.size() == 2);
    CHECK(actions[0].kind == Action::within);
    CHECK(actions[0].text == pod);
    CHECK(stage.state.view == View::list);
    stage.snapshot.by = "pid";
    CHECK(stage.shows("by pid in " + by + " "));
    actions = stage.press(key::escape);
    CHECK(actions.front().kind == Action::within);
    CHECK(actions.front().text.empty());
    CHECK(stage.state.selected == pod);
    CHECK_FALSE(stage.shows(" in " + by));
}

TEST_CASE("an opened row shows the history of what is wrong with it", "[screen]")
{
    Stage stage;
    const std::string id = arrange(stage.snapshot, stage.state.arrangement).front()->id;
    Trouble trouble;
    trouble.column = "sync_percent";
    trouble.rows = {id};
    stage.snapshot.troubles = {trouble};
    stage.press(key::enter);
    CHECK(stage.state.open == id);
    CHECK(stage.state.plotted == "sync_percent");
}

// Whatever is pressed at whatever size, the screen can be drawn and the selected row is seen.
TEST_CASE("any keys at any size", "[screen]")
{
    std::mt19937 random(20260101);
    const auto upto = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
    static constexpr std::u32string_view keys = U"<>rRft/\\nN+-dbcs?hmwz p123\r\x1b\x15 a1.\u8a13qjk";
    for (int round = 0; round < 30; ++round) {
        Stage stage;
        for (int i = 0; i < 150; ++i) {
            const auto extra = key::backspace + static_cast<Key>(upto(18));
            stage.press(upto(2) ? keys[static_cast<size_t>(upto(static_cast<int>(keys.size()) - 1))] : extra);
            if (upto(9) == 0)
                stage.state.size = {1 + upto(upto(1) ? 200 : 5), 1 + upto(upto(1) ? 60 : 5)};
            if (upto(5) == 0) {
                stage.cast = {static_cast<size_t>(upto(60)), static_cast<size_t>(upto(10))};
                stage.next();
            }
            clamp(stage.state, stage.snapshot);
            REQUIRE(stage.lines().size() == static_cast<size_t>(stage.state.size.lines));
        }
    }
}

TEST_CASE("keys that are not known press no others", "[screen]")
{
    using Keys = std::vector<Key>;
    CHECK(without_sequences({}).empty());
    CHECK(without_sequences({U'q', key::escape}) == Keys{U'q', key::escape});
    CHECK(without_sequences({key::escape, U'[', U'1', U';', U'5', U'A', U'q'}) == Keys{U'q'});
    CHECK(without_sequences({key::escape, U'O', U'Z', key::escape}) == Keys{key::escape});
    CHECK(without_sequences({key::escape, U'[', U'3'}).empty());
    CHECK(without_sequences({key::escape, U'q'}) == Keys{key::escape, U'q'});
}

TEST_CASE("a plot stands still during a pause", "[screen]")
{
    Stage stage({80, 24});
    stage.next();
    stage.press(U"\rp");
    const std::string before = stage.text();
    stage.state.history.add(scene::snapshot(stage.cast, 2));
    ++stage.state.behind;
    CHECK(stage.text() == before);
    stage.press(U"p");
    CHECK(stage.text() != before);
}
