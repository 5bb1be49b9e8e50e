// SPDX-License-Identifier: Apache-2.0
// The list: selection, order, tree and columns.
#include "screen/list_view.hpp"
#include "tests/unit/screen/screen_fixture.hpp"

#include <catch2/generators/catch_generators.hpp>

using namespace gpusnoop;

TEST_CASE("the selection follows its row", "[screen]")
{
    Stage stage;
    CHECK(stage.state.selected.empty()); // no row is selected yet: the first line is highlighted, even if rows move
    CHECK(stage.after(key::down).state.selected == "1004");
    CHECK(stage.after(U"r").order() == "1000 1001 1002 1003 1004 1005 ");
    CHECK(stage.state.selected == "1004");
    CHECK(stage.after(key::down, key::down).state.selected == "1005"); // already at the end
    stage.cast.rows = 3;                                               // the selected row disappears
    stage.next();
    CHECK(stage.state.selected == "1002");
    CHECK(stage.after(key::home).state.selected.empty());
    stage.cast.rows = 0;
    stage.next();
    for (Key key : std::initializer_list<Key>{key::up, key::down, key::page_down, key::end, key::enter})
        CHECK(stage.press(key).empty());
    CHECK(stage.shows("Nothing uses a GPU yet."));
}

TEST_CASE("page keys, Home and End", "[screen]")
{
    Stage stage;
    stage.cast.rows = 100;
    stage.next();
    CHECK(stage.after(key::page_down).state.first_row > 0);
    CHECK(stage.state.selected < "1099");
    CHECK(stage.after(key::end).state.selected == "1000");
    CHECK(stage.lines()[stage.lines().size() - 3].starts_with("   1000"));
    CHECK(stage.after(key::page_up, key::home).state.first_row == 0);
}

TEST_CASE("sorting by another column, in reverse order, and in a frozen order", "[screen]")
{
    Stage stage;
    CHECK(stage.after(U"<").state.arrangement.sort == "comm");
    CHECK(stage.state.arrangement.ascending); // text is sorted from A to Z
    CHECK(stage.after(U">>>").state.arrangement.sort == "h2d_bytes_per_second");
    CHECK(stage.order() == "1000 1001 1002 1003 1004 1005 ");
    stage.press(U"f");
    stage.press(U"t"); // the tree keeps the frozen order
    stage.press(U"t");
    stage.snapshot.rows[5].cells[6] = uint64_t{1} << 50;
    CHECK(stage.order() == "1000 1001 1002 1003 1004 1005 ");
    CHECK(stage.shows("FROZEN"));
    CHECK(stage.after(U"f").order() == "1005 1000 1001 1002 1003 1004 ");
    for (int i = 0; i < 50; ++i)
        stage.press(U">");
    CHECK(stage.state.arrangement.sort == "sm_percent");
    CHECK(stage.shows("SM%*")); // scrolled into view
}

TEST_CASE("choosing a column to sort by", "[screen]")
{
    Stage stage;
    CHECK(stage.after(U"s").state.view == View::choose_sort);
    CHECK(stage.shows(" *  LAUNCH/s"));
    CHECK(stage.after(key::down, key::enter).state.arrangement.sort == "graph_launches_per_second");
    CHECK(stage.state.view == View::list);
    CHECK(stage.after(U"s", key::home, key::escape).state.arrangement.sort == "graph_launches_per_second");
}

TEST_CASE("the sum line covers the filtered rows", "[screen]")
{
    Stage stage;
    const auto launches = [&] { return std::get<double>(sum_line(stage.snapshot, stage.state.arrangement)->cells[4]); };
    CHECK(launches() == 2100); // from the snapshot
    stage.press(U"/leak");
    CHECK(launches() == 300);
    stage.press(U"zzz");
    CHECK(std::holds_alternative<std::monostate>(sum_line(stage.snapshot, stage.state.arrangement)->cells[4]));
    stage.press(key::escape);
    CHECK(launches() == 2100);
    stage.snapshot.totals.clear();
    CHECK_FALSE(sum_line(stage.snapshot, stage.state.arrangement));
}

TEST_CASE("choosing the grouping key of the rows", "[screen]")
{
    Stage stage;
    auto actions = stage.press(U"3");
    REQUIRE(actions.size() == 2);
    CHECK((actions[0].kind == Action::by && actions[0].text == "container"));
    CHECK(actions[1].kind == Action::refresh);
    CHECK(stage.press(U"1").empty()); // already grouped by pid
    CHECK(stage.after(U"b").shows(" *  pid"));
    stage.press(key::end);
    actions = stage.press(key::enter);
    REQUIRE(actions.size() == 2);
    CHECK(actions[0].text == "device");
}

TEST_CASE("choosing columns and their order", "[screen]")
{
    Stage stage;
    CHECK_FALSE(stage.shows("POD"));
    CHECK(stage.after(U"c").shows("[ ] POD"));
    CHECK(stage.shows("Launch latency. Needs --latency"));
    for (int i = 0; i < 12; ++i)
        stage.press(key::down);
    CHECK(stage.after(U" ").shows("[x] POD"));
    for (int i = 0; i < 9; ++i)
        stage.press(U"<");
    CHECK(stage.after(key::enter).state.shown[3] == "pod");
    CHECK(stage.lines()[4].find("POD") < stage.lines()[4].find("LAUNCH/s"));
    stage.press(U"c");
    for (int i = 0; i < 50; ++i)
        stage.press(U" "); // toggles the column
    CHECK(stage.after(key::escape).state.view == View::list);
}

TEST_CASE("a column that one grouping has only in JSON reappears with a grouping that has it in its table", "[screen]")
{
    Stage stage;
    stage.state = ScreenState({.sort = "launches_per_second"});
    stage.snapshot.columns[0].column.in_text = false;
    clamp(stage.state, stage.snapshot);
    CHECK(stage.state.shown.front() == "user");
    stage.next();
    CHECK(stage.state.shown.front() == "pid");
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
    CHECK(lines[11].starts_with("- (none) (2)")); // rows without a pod are last, although one of them sorts first
    CHECK(lines[12].starts_with("├─    1005"));
}

TEST_CASE("a branch of the tree shows the sums of its rows, and can be folded", "[screen]")
{
    Stage stage;
    stage.snapshot.columns[4].adds = true;
    stage.press(U"t");
    const auto shown = [&] { return list_lines(stage.state, stage.snapshot).size(); };
    const size_t all = shown();
    const ListLine heading = list_lines(stage.state, stage.snapshot).front();
    CHECK(std::get<double>(heading.sum[4]) == sort_value(list_lines(stage.state, stage.snapshot)[1].row->cells[4]) +
                                                  sort_value(list_lines(stage.state, stage.snapshot)[2].row->cells[4]));
    CHECK(stage.after(key::home, key::left).state.selected == heading.id()); // selects the heading
    stage.press(U"-");
    CHECK(shown() == all - 2);
    CHECK(stage.shows("+ pod-1 (2)"));
    CHECK(stage.state.selected == heading.id());
    stage.press(key::enter);
    CHECK(shown() == all);
    CHECK(stage.state.view == View::list);
    stage.press(U"*");
    CHECK(shown() == 3);
    stage.after(key::down, U"*");
    CHECK(shown() == all);
    CHECK(stage.state.interval == std::chrono::seconds(1));
}

TEST_CASE("Enter on a pod or a device lists its processes, and Esc returns", "[screen]")
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
