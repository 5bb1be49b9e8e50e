// SPDX-License-Identifier: Apache-2.0
#include "run/ring.hpp"

#include "base/fd.hpp"

#include <bpf/bpf.h>
#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

using namespace gpusnoop;

namespace {

constexpr uint32_t places = 8;
constexpr auto never = std::chrono::steady_clock::time_point::max();

Fd create()
{
    bpf_map_create_opts options{};
    options.sz = sizeof(options);
    options.map_flags = BPF_F_MMAPABLE;
    return Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "lines", sizeof(uint32_t), sizeof(line), 1 + places, &options));
}

// Writes lines into the array, like the BPF programs. The time of each line is its number.
class Sender {
public:
    int map() const { return map_.get(); }
    volatile line_positions& positions() { return reinterpret_cast<volatile line_positions&>(array_[0]); }
    uint64_t take_place() { return std::exchange(positions().reserved, positions().reserved + 1); }
    void write(uint64_t number)
    {
        volatile line& place = array_[1 + number % places];
        place.event.time_ns = number;
        place.published = number + 1;
    }
    void send(int lines)
    {
        for (int i = 0; i < lines; i++)
            write(take_place());
    }

private:
    Fd map_ = create();
    SharedArray<line> array_{map_.get(), 1 + places};
};

std::vector<uint64_t> drain(Lines& lines, uint64_t end)
{
    std::vector<uint64_t> drained;
    const bool more = lines.drain(
        end,
        [&](const void* record, size_t size) {
            CHECK(size == sizeof(call_event));
            drained.push_back(static_cast<const call_event*>(record)->time_ns);
        },
        never);
    CHECK_FALSE(more);
    return drained;
}

using Numbers = std::vector<uint64_t>;

} // namespace

TEST_CASE("lines are read in order, also when the array wraps around", "[lines]")
{
    Sender sender;
    Lines lines(sender.map(), places);
    CHECK(drain(lines, lines.sent()).empty());
    sender.send(6);
    CHECK(drain(lines, 4) == Numbers{0, 1, 2, 3});
    CHECK(sender.positions().consumed == 4);
    sender.send(6);
    CHECK(drain(lines, lines.sent()) == Numbers{4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(sender.positions().consumed == 12);
}

TEST_CASE("if a line is still being written, that line and all later lines are read later", "[lines]")
{
    Sender sender;
    Lines lines(sender.map(), places);
    for (int round = 0; round < 3; round++) { // from the second round on, the slot contains an old line
        const uint64_t late = (sender.send(2), sender.take_place());
        sender.send(1);
        CHECK(drain(lines, lines.sent()) == Numbers{late - 2, late - 1});
        CHECK(drain(lines, lines.sent()).empty());
        CHECK(sender.positions().consumed == late);
        sender.write(late);
        CHECK(drain(lines, lines.sent()) == Numbers{late, late + 1});
        sender.send(4);
        CHECK(drain(lines, lines.sent()).size() == 4);
    }
}

TEST_CASE("a drain whose time limit is zero reads one line and leaves the rest", "[lines]")
{
    Sender sender;
    Lines lines(sender.map(), places);
    sender.send(3);
    int taken = 0;
    const auto one = [&](const void*, size_t) { taken++; };
    CHECK(lines.drain(lines.sent(), one, {}));
    CHECK(taken == 1);
    CHECK(sender.positions().consumed == 1);
    CHECK(lines.drain(lines.sent(), one, {}));
    CHECK_FALSE(lines.drain(lines.sent(), one, {}));
    CHECK(taken == 3);
}

TEST_CASE("a line whose handler throws counts as read", "[lines]")
{
    Sender sender;
    Lines lines(sender.map(), places);
    sender.send(2);
    CHECK_THROWS(lines.drain(
        lines.sent(), [](const void*, size_t) { throw Error("no"); }, never));
    CHECK(sender.positions().consumed == 1);
    CHECK(drain(lines, lines.sent()) == Numbers{1});
}

TEST_CASE("places_in() and wake_bits(): the reader is woken about eight times while the buffer fills", "[lines]")
{
    CHECK(Lines::places_in(0) == 0);
    CHECK(Lines::places_in(sizeof(line)) == 1);
    CHECK(Lines::places_in(1 << 20) == (1 << 20) / sizeof(line));
    CHECK(Lines::wake_bits(0) == 0);
    CHECK(Lines::wake_bits(7) == 0);
    CHECK(Lines::wake_bits(8 * 64) == 63);
    CHECK(Lines::wake_bits(8 * 127 + 7) == 63);
}
