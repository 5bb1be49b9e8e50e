// SPDX-License-Identifier: Apache-2.0
#include "screen/layout.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using namespace gpusnoop;

namespace {

constexpr int rounds = 20'000;

class Numbers {
public:
    int upto(int most) { return std::uniform_int_distribution(0, most)(engine_); }
    int size() { return 1 + upto(upto(3) ? 120 : 1000); }

private:
    std::mt19937 engine_{20260101};
};

bool is_inside(const Rect& rect, Size screen)
{
    return rect.x >= 0 && rect.y >= 0 && rect.width >= 0 && rect.height >= 0 && rect.x + rect.width <= screen.columns &&
           rect.y + rect.height <= screen.lines;
}

} // namespace

TEST_CASE("regions are stacked within the screen, with room for at least one row", "[layout]")
{
    Numbers numbers;
    for (int i = 0; i < rounds; ++i) {
        const Size screen{numbers.size(), numbers.size()};
        const int gpus = numbers.upto(20), facts = numbers.upto(20);
        const Regions r = lay_out(screen, gpus, facts, numbers.upto(5), numbers.upto(1));
        int y = 0;
        bool good = r.rows.height >= 1 && r.gpus.height <= gpus && r.facts.height <= facts;
        for (const Rect& rect : {r.title, r.gpus, r.facts, r.troubles, r.header, r.rows, r.totals, r.footer}) {
            good = good && is_inside(rect, screen) && rect.y == y && rect.width == screen.columns;
            y += rect.height;
        }
        INFO(screen.columns << "x" << screen.lines << " gpus " << gpus << " facts " << facts);
        REQUIRE((good && y == screen.lines));
    }
}

TEST_CASE("regions of common screen sizes", "[layout]")
{
    const Regions small = lay_out({80, 24}, 4, 3, 0, true);
    CHECK(small.rows.height >= 12);
    CHECK(small.gpus.height == 4);
    CHECK(small.facts.height == 3);
    CHECK(lay_out({1, 1}, 8, 8, 3, true).rows == Rect{0, 0, 1, 1});
    CHECK(lay_out({80, 2}, 8, 8, 3, true).header.height == 1);
    CHECK(lay_out({80, 3}, 8, 8, 3, true).footer.height == 1);
    CHECK(gpus_per_line(80, 8) == 2);
    CHECK(gpus_per_line(80, 1) == 1);
    CHECK(gpus_per_line(1, 8) == 1);
}

TEST_CASE("flow() places items without overlap", "[layout]")
{
    Numbers numbers;
    for (int i = 0; i < rounds / 10; ++i) {
        const int columns = numbers.size();
        std::vector<int> widths(static_cast<size_t>(numbers.upto(30)));
        std::ranges::generate(widths, [&] { return numbers.upto(60); });
        const std::vector<Rect> rects = flow(columns, widths);
        REQUIRE(rects.size() == widths.size());
        for (size_t at = 0; at < rects.size(); ++at) {
            REQUIRE(is_inside(rects[at], {columns, 1000}));
            if (at > 0 && rects[at].y == rects[at - 1].y)
                REQUIRE(rects[at].x >= rects[at - 1].x + rects[at - 1].width);
            else if (at > 0)
                REQUIRE(rects[at].y == rects[at - 1].y + 1);
        }
    }
}

TEST_CASE("scroll() keeps the selected row visible and leaves no line empty", "[layout]")
{
    Numbers numbers;
    for (int i = 0; i < rounds; ++i) {
        const int count = numbers.upto(300), height = numbers.size();
        const int selected = count ? numbers.upto(count - 1) : -1;
        const int first = scroll(numbers.upto(600) - 300, selected, count, height);
        INFO("count " << count << " height " << height << " selected " << selected << " first " << first);
        REQUIRE((first >= 0 && first <= std::max(count - height, 0)));
        REQUIRE((selected < 0 || (first <= selected && selected < first + height)));
    }
    CHECK(scroll(10, -1, 5, 3) == 2);
}

TEST_CASE("columns do not overlap, fit the screen, and can all be scrolled to", "[layout]")
{
    Numbers numbers;
    for (int i = 0; i < rounds; ++i) {
        const int columns = numbers.size(), staying = numbers.upto(3);
        std::vector<ColumnWidth> widths(static_cast<size_t>(1 + numbers.upto(40)));
        for (ColumnWidth& width : widths) {
            width.least = 1 + numbers.upto(20);
            width.wanted = width.least + numbers.upto(30);
        }
        const ColumnPlaces places = place_columns(columns, widths, staying, numbers.upto(50) - 5);
        INFO(columns << " columns, " << widths.size() << " wide, " << staying << " stay");
        REQUIRE(!places.placed.empty());
        REQUIRE((places.first >= 0 && places.more >= 0));
        int x = 0;
        for (const PlacedColumn& placed : places.placed) {
            const ColumnWidth& width = widths[static_cast<size_t>(placed.column)];
            REQUIRE(placed.x >= x);
            REQUIRE((placed.width >= 1 && placed.width <= width.wanted));
            REQUIRE((placed.width >= width.least || placed.x + placed.width == columns));
            x = placed.x + placed.width + 1;
            REQUIRE(x - 1 <= columns);
        }
        const int wanted = numbers.upto(static_cast<int>(widths.size()) - 1);
        const int first = scroll_to_column(columns, widths, staying, places.first, wanted);
        const auto seen = place_columns(columns, widths, staying, first).placed;
        REQUIRE(std::ranges::find(seen, wanted, &PlacedColumn::column) != seen.end());
    }
}

TEST_CASE("the first columns stay in place during horizontal scrolling", "[layout]")
{
    const std::vector<ColumnWidth> widths(10, {9, 9});
    const ColumnPlaces places = place_columns(40, widths, 2, 3);
    REQUIRE(places.placed.size() == 4);
    CHECK(places.placed[1].column == 1);
    CHECK(places.placed[2].column == 5);
    CHECK(places.more == 3);
    CHECK(place_columns(40, widths, 2, 99).first == 6); // scrolls no further than the last column
    CHECK(place_columns(10, widths, 2, 4).placed[0].column == 4);
}
