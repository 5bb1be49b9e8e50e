// SPDX-License-Identifier: Apache-2.0
// State files are replaced atomically: if a run is killed at any point, no saved time is lost or counted twice.
#include "tools/gpuspend/spend_state.hpp"

#include "base/error.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/base/small_files.hpp"
#include "tools/gpuspend/bill.hpp"

#include <csignal>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

constexpr uint64_t second = 1'000'000'000;

Slice slice(uint64_t ns)
{
    Holder one{.tenant = {.pod_namespace = "research", .pod = "trainer\t0%\n", .owner = "ä\x01"},
               .sources = HELD_BY_KUBELET};
    one.used.launches = 3;
    one.used.byte_ns = uint128{80'000'000'000} * ns * 1000;
    one.active = true;
    Slice all{.ns = ns,
              .devices = {{.device = {"GPU-a", 2'950'000}, .model = "H100", .parts = 4, .holders = {one}}},
              .elsewhere = {}};
    all.devices.push_back({.device = {"GPU-b", {}}, .model = "", .parts = 1, .holders = {}});
    all.devices.front().holders.front().parts = 3;
    all.elsewhere[one.tenant].bytes = 7;
    return all;
}

SpendState state(uint64_t slices)
{
    SpendState all{
        .view = "pod", .began_ns = 1000, .saved_ns = 1000 + slices * second, .ledger = Ledger(SplitBy::memory)};
    for (uint64_t i = 0; i < slices; i++)
        all.ledger.add(slice(second));
    if (slices)
        all.ledger.saw_pod(slice(1).devices.front().holders.front().tenant, "uid-1");
    return all;
}

uint64_t seconds_in(const StateFile& file)
{
    const auto read = file.read();
    return read ? read->ledger.ns() / second : 0;
}

} // namespace

TEST_CASE("a state survives writing and reading", "[spend]")
{
    const std::string text = state(5).text();
    const SpendState read = SpendState::of(text, "f");
    CHECK(read.text() == text);
    CHECK(read.ledger.split() == SplitBy::memory);
    CHECK(make_bill(read.ledger, true).micros == make_bill(state(5).ledger, true).micros);
    CHECK(read.ledger.tenants().begin()->second.pods == std::set<std::string>{"uid-1"});
    CHECK(SpendState::of(state(0).text(), "f").text() == state(0).text());
    CHECK(SpendState{.view = {}, .began_ns = 5, .saved_ns = 12, .ledger = Ledger()}.unseen_ns() == 7);
}

TEST_CASE("if the clock is set back, a state keeps its sums, and its period still covers them", "[spend]")
{
    constexpr uint64_t day = 86400 * second;
    SpendState all = state(5);
    all.began_ns += 2 * day;
    all.saved_ns += 2 * day + 7 * second; // 7 s that the ledger does not cover
    CHECK(all.saved_at(all.saved_ns - day) == day);
    CHECK(all.unseen_ns() == 7 * second);
    CHECK(all.saved_at(all.saved_ns + second) == 0);
    CHECK(all.unseen_ns() == 8 * second);
    all.began_ns = all.saved_ns + day; // earlier versions could save a start in the future
    SpendState read = SpendState::of(all.text(), "f");
    CHECK(read.ledger.ns() == 5 * second);
    CHECK(read.unseen_ns() == 0);
    CHECK(read.saved_at(read.saved_ns) == day);
    CHECK(read.saved_ns - read.began_ns == 5 * second);
    CHECK(read.saved_at(3 * second) > day); // the clock reads 3 s, but the ledger covers 5 s
    CHECK(read.began_ns == 0);
    CHECK(read.ledger.ns() == 5 * second);
}

TEST_CASE("a truncated or changed state is rejected", "[spend]")
{
    const std::string text = state(2).text();
    for (size_t size = 0; size + 1 < text.size(); size++) // the last newline may be missing
        REQUIRE_THROWS_AS(SpendState::of(std::string_view(text).substr(0, size), "f"), Error);
    CHECK_THROWS_AS(SpendState::of(text + "x", "f"), Error);
    // A state with changed characters is either rejected, or its parts still add up to the total.
    std::mt19937 random(3);
    for (int i = 0; i < 3000; i++) {
        std::string changed = text;
        for (unsigned k = 0; k <= random() % 3; k++)
            changed[random() % changed.size()] = static_cast<char>(random() % 2 ? '0' + random() % 10 : random());
        try {
            const Bill bill = make_bill(SpendState::of(changed, "f").ledger, true);
            REQUIRE(bill.used_ns + bill.idle_ns + bill.unallocated_ns == bill.ns);
        } catch (const Error&) {}
    }
}

TEST_CASE("a state file is locked by one run", "[spend]")
{
    const Folder folder;
    const std::string path = folder.file("state");
    const StateFile file(path);
    CHECK(!file.read());
    CHECK_THROWS_AS(StateFile(path), Error);
    file.write(state(1));
    CHECK(seconds_in(file) == 1);
    std::filesystem::permissions(path, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
    CHECK_THROWS_AS(file.read(), Error);
    std::filesystem::remove(path);
    folder.folder("state");
    CHECK_THROWS_AS(file.read(), Error);
    CHECK_THROWS_AS(file.write(state(1)), Error);
    CHECK_THROWS_AS(StateFile(folder.file("no/folder")), Error);
}

TEST_CASE("a write that fails leaves the old state and no other file", "[spend]")
{
    const Folder folder;
    const StateFile file(folder.file("state"));
    file.write(state(1));
    for (const size_t room : {size_t{0}, size_t{1}, state(2).text().size() / 2, state(2).text().size() - 1}) {
        const SmallFiles limit(room);
        CHECK_THROWS_AS(file.write(state(2)), Error);
        CHECK(seconds_in(file) == 1);
    }
    CHECK(std::distance(std::filesystem::directory_iterator(folder.file("")), {}) == 2); // the state and its lock
    file.write(state(3));
    CHECK(seconds_in(file) == 3);
}

TEST_CASE("other files in place of a state, or next to it, are not changed", "[spend]")
{
    const Folder folder;
    const StateFile file(folder.file("state"));
    folder.file("state.new", "precious");
    file.write(state(1));
    std::filesystem::remove(folder.file("state"));
    folder.file("state", "precious");
    CHECK_THROWS_AS(file.write(state(1)), Error);
    CHECK_THROWS_AS(file.read(), Error);
    for (const char* name : {"state", "state.new"})
        CHECK(std::filesystem::file_size(folder.file(name)) == 8);
}

TEST_CASE("a reader never sees a partial state", "[spend]")
{
    const Folder folder;
    const std::string path = folder.file("state");
    StateFile(path).write(state(1));
    const pid_t writer = fork();
    REQUIRE(writer >= 0);
    if (writer == 0)
        for (const StateFile file(path);;)
            for (uint64_t slices = 1; slices < 50; slices++)
                file.write(state(slices));
    for (int i = 0; i < 2000; i++) {
        CHECK_NOTHROW(SpendState::of(contents(path), "f"));
    }
    kill(writer, SIGKILL);
    REQUIRE(waitpid(writer, nullptr, 0) == writer);
}

TEST_CASE("100 kills at random times lose no saved state", "[spend]")
{
    const Folder folder;
    const std::string path = folder.file("state");
    std::mt19937 random(11);
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            const StateFile file(path);
            SpendState all = file.read().value_or(state(0));
            for (;;) { // one second per round
                all.ledger.add(slice(second));
                all.saved_ns += second;
                file.write(all);
            }
        }
        usleep(static_cast<useconds_t>(random() % 6000));
        kill(child, SIGKILL);
        REQUIRE(waitpid(child, nullptr, 0) == child);
        const auto read = StateFile(path).read();
        const uint64_t seconds = read ? read->ledger.ns() / second : 0;
        REQUIRE(seconds >= last);
        last = seconds;
        if (!read)
            continue;
        const Bill bill = make_bill(read->ledger, true);
        REQUIRE(bill.ns == 2 * seconds * second); // two devices
        REQUIRE(bill.used_ns + bill.idle_ns + bill.unallocated_ns == bill.ns);
        REQUIRE(read->ledger.tenants().begin()->second.elsewhere.bytes == 7 * seconds);
    }
    CHECK(last > 0);
}
