// SPDX-License-Identifier: Apache-2.0
// Division of device time and cost between tenants, exact to the nanosecond and the millionth of a currency unit.
#include "tools/gpuspend/bill.hpp"
#include "tools/gpuspend/spend_state.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <numeric>
#include <random>

using namespace gpusnoop;

namespace {

constexpr uint64_t second = 1'000'000'000, hour = 3600 * second;
constexpr uint64_t gib = 1 << 30;

Tenant tenant(const std::string& pod)
{
    return {.pod_namespace = "research", .pod = pod};
}

Holder holder(const std::string& pod, uint64_t launches = 0, uint64_t busy_ns = 0, uint64_t bytes = 0)
{
    Holder one{.tenant = tenant(pod), .sources = HELD_BY_CONTEXT};
    one.used.launches = launches;
    one.used.busy_ns = busy_ns;
    one.used.byte_ns = uint128{bytes} * second;
    one.active = one.used.launched();
    return one;
}

Slice slice(uint64_t ns, std::vector<Holder> holders, const std::string& id = "GPU-a", uint64_t parts = 1)
{
    return {.ns = ns,
            .devices = {{.device = {id, 2'950'000}, .model = "H100", .parts = parts, .holders = std::move(holders)}},
            .elsewhere = {}};
}

const Account& account(const Ledger& ledger, const std::string& pod)
{
    return ledger.devices().begin()->second.tenants.at(tenant(pod));
}

void check_sums(const Ledger& ledger)
{
    uint64_t ns = 0, micros = 0;
    for (const auto& [key, device] : ledger.devices()) {
        uint64_t sum = device.unallocated_ns;
        for (const auto& [who, one] : device.tenants)
            sum += one.used_ns + one.idle_ns;
        REQUIRE(sum == device.ns);
        ns += device.ns;
    }
    for (const bool by_device : {false, true}) {
        const Bill bill = make_bill(ledger, by_device);
        micros = bill.unallocated_micros;
        uint64_t idle = 0, of_devices = 0;
        for (const auto& [key, row] : bill.rows) {
            micros += row.used_micros + row.idle_micros;
            idle += row.idle_micros;
        }
        for (const auto& [key, device] : ledger.devices())
            of_devices +=
                key.price.value_or(0) ? static_cast<uint64_t>((uint128{device.ns} * *key.price + hour / 2) / hour) : 0;
        REQUIRE(bill.ns == ns);
        REQUIRE(bill.used_ns + bill.idle_ns + bill.unallocated_ns == ns);
        REQUIRE(micros == bill.micros);
        REQUIRE(of_devices == bill.micros);
        REQUIRE(idle == bill.idle_micros);
    }
}

} // namespace

TEST_CASE("a device with one holder is used, idle or unallocated", "[spend]")
{
    Ledger ledger;
    ledger.add(slice(6 * second, {holder("trainer-0", 10)}));
    ledger.add(slice(3 * second, {holder("trainer-0")}));
    ledger.add(slice(1 * second, {}));
    CHECK(account(ledger, "trainer-0").used_ns == 6 * second);
    CHECK(account(ledger, "trainer-0").idle_ns == 3 * second);
    CHECK(account(ledger, "trainer-0").resident_ns == 9 * second);
    CHECK(account(ledger, "trainer-0").driving_ns == 6 * second);
    CHECK(account(ledger, "trainer-0").allocated_ns == 0);
    CHECK(account(ledger, "trainer-0").shared_ns == 0);
    CHECK(ledger.devices().begin()->second.unallocated_ns == second);
    check_sums(ledger);
}

// One tenant has a kernel that runs for a whole second, and three times as much memory as the other. The other has a
// thousand kernels, which run for a tenth of that second. Each kind of split gives a different result.
TEST_CASE("splits differ for one long kernel and many small ones", "[spend]")
{
    const auto share = [](SplitBy split) {
        Ledger ledger(split);
        for (int i = 0; i < 10; i++)
            ledger.add(slice(
                second, {holder("long", i == 0, 9 * second / 10, 3 * gib), holder("many", 1000, second / 10, gib)}));
        check_sums(ledger);
        const Account& of = account(ledger, "long");
        CHECK(of.shared_ns == of.used_ns + of.idle_ns);
        CHECK(of.equally_ns == 0);
        return static_cast<double>(of.used_ns + of.idle_ns) / (10.0 * second);
    };
    CHECK(share(SplitBy::launches) < 0.001); // the tenant with many launches pays nearly all
    CHECK(fmt::format("{:.3f}", share(SplitBy::busy)) == "0.900");
    CHECK(fmt::format("{:.3f}", share(SplitBy::memory)) == "0.750");
}

TEST_CASE("time without counted activity is divided equally, and marked as such", "[spend]")
{
    Ledger ledger(SplitBy::busy); // the driver takes no samples
    ledger.add(slice(second, {holder("a", 5), holder("b")}));
    CHECK(account(ledger, "a").used_ns == second / 2);
    CHECK(account(ledger, "b").idle_ns == second / 2);
    CHECK(account(ledger, "a").equally_ns == second / 2);
    check_sums(ledger);
}

TEST_CASE("the time of replicas that are not allocated is unallocated", "[spend]")
{
    Holder a = holder("a"), b = holder("b");
    a.parts = 1;
    b.parts = 2;
    a.sources = b.sources = HELD_BY_KUBELET;
    Ledger ledger;
    ledger.add(slice(4 * second, {a, b}, "GPU-a", 4));
    CHECK(ledger.devices().begin()->second.unallocated_ns == second);
    CHECK(account(ledger, "a").idle_ns == second); // 1 of 4 replicas: without launches, time is divided by replicas
    CHECK(account(ledger, "b").idle_ns == 2 * second);
    CHECK(account(ledger, "b").allocated_ns == 2 * second);
    CHECK(account(ledger, "b").resident_ns == 0);
    check_sums(ledger);
}

TEST_CASE("the tenants' times and costs add up to the device's, for random slices", "[spend]")
{
    std::mt19937_64 random(7);
    for (const SplitBy split : {SplitBy::launches, SplitBy::busy, SplitBy::memory}) {
        Ledger ledger(split), total(split);
        for (int i = 0; i < 300; i++) {
            std::vector<Holder> holders;
            const uint64_t count = random() % 5;
            for (uint64_t k = 0; k < count; k++) {
                Holder one = holder(fmt::format("pod-{}", k), random() % 3 ? random() % 1000 : 0, random() % second,
                                    random() % (80 * gib));
                one.parts = random() % 3;
                holders.push_back(one);
            }
            ledger.add(slice(random() % (2 * second), holders, fmt::format("GPU-{}", random() % 3), 1 + random() % 4));
        }
        check_sums(ledger);
        total.add(ledger);
        total.add(ledger.named([](const Tenant& of) { return Tenant{.owner = of.pod < "pod-2" ? "one" : "other"}; }));
        check_sums(total);
        CHECK(total.ns() == 2 * ledger.ns());
    }
}

TEST_CASE("tenants above the limit are merged into one", "[spend]")
{
    Ledger ledger;
    for (size_t i = 0; i < Ledger::most_tenants + 100; i++)
        ledger.add(slice(second, {holder(fmt::format("pod-{}", i), 1)}));
    CHECK(ledger.tenants().size() == Ledger::most_tenants + 1);
    check_sums(ledger);
}

// A simulated month of short-lived pods. As in gpuspend, times are summed by pod id, and at each report by pod name.
TEST_CASE("many pods take bounded memory, and their times add up", "[spend]")
{
    SpendState state{.view = "pod", .began_ns = 0, .saved_ns = 0, .ledger = Ledger()};
    size_t largest = 0;
    for (int report = 0; report < 400; report++) {
        Ledger ledger;
        for (int i = 0; i < 100; i++) {
            Holder one{.tenant = {.id = fmt::format("pod {}.{}", report, i)}, .sources = HELD_BY_KUBELET};
            ledger.add(slice(second, {one}));
            ledger.saw_pod(one.tenant, one.tenant.id);
        }
        const bool own_names = report >= 200; // the pods of earlier reports share one name
        const auto name = [&](const Tenant& of) { return tenant(own_names ? of.id : "trainer-0"); };
        state.ledger.add(ledger.named(name));
        if (report == 199)
            REQUIRE(state.ledger.tenants().at(tenant("trainer-0")).pods.size() == TenantAccount::max_pods);
        if (report >= 380) {
            const size_t size = state.text().size();
            REQUIRE((largest == 0 || size < largest + 64 * 1024));
            largest = std::max(largest, size);
        }
    }
    CHECK(state.ledger.tenants().size() == Ledger::most_tenants + 1);
    CHECK(state.ledger.ns() == 40'000 * second);
    check_sums(state.ledger);
}

TEST_CASE("efficiency is measured only while the tenant launches", "[spend]")
{
    Ledger ledger;
    Slice one = slice(second, {holder("a", 1)});
    const auto gauges = [&](double sm, std::optional<uint64_t> memory) {
        Gauges& to = one.devices.front().gauges = {};
        to.set_percent(Figure::sm_active, sm, MEASURED_BY_NVML);
        to.set(Figure::memory_used, memory, MEASURED_BY_DCGM);
        to.set_percent(Figure::sm_active, 1, MEASURED_BY_DCGM); // does not replace NVML's value
    };
    gauges(60, {});
    ledger.add(one);
    one.ns = 3 * second;
    gauges(20, 80 * gib);
    ledger.add(one);
    const Efficiency& of = account(ledger, "a").efficiency;
    CHECK(of.mean(Figure::sm_active) == 300'000);
    CHECK(of.mean(Figure::memory_used) == static_cast<double>(80 * gib));
    CHECK(!of.mean(Figure::dram_active));
    CHECK(of.shared_ns == 0);
    CHECK(measured_by_text(of.sources) == "nvml,dcgm");
    // Time without launches does not count for efficiency; time with a second holder is marked as shared.
    one.devices.front().holders.push_back(holder("b"));
    ledger.add(one);
    CHECK(account(ledger, "b").efficiency.sources == 0);
    CHECK(account(ledger, "a").efficiency.shared_ns == 3 * second);
    gauges(101, {});
    CHECK(one.devices.front().gauges.values[0] == 10'000); // DCGM's value, because NVML's is invalid
    check_sums(ledger);
}

TEST_CASE("an idle allocation is reported in a sentence", "[spend]")
{
    Ledger ledger;
    Slice both = slice(7 * hour + 6 * 60 * second, {holder("trainer-0")});
    both.devices.push_back(both.devices.front());
    both.devices.back().device.id = "GPU-b";
    both.devices.front().device.price = both.devices.back().device.price = 4'437'500;
    ledger.add(both);
    both.ns = 54 * 60 * second;
    both.devices.front().holders = {holder("trainer-0", 100)};
    ledger.add(both);
    using Lines = std::vector<std::string>;
    CHECK(sentences(make_bill(ledger, false), "USD") ==
          Lines{"research/trainer-0 held 2 GPUs for 8.0 h ($71.00) and launched nothing for 7.1 h"});
    Ledger busy;
    busy.add(slice(hour, {holder("trainer-0", 1)}));
    CHECK(sentences(make_bill(busy, false), "USD").empty());
    check_sums(ledger);
}

TEST_CASE("a tenant that launches on an unknown device is not counted as idle", "[spend]")
{
    Ledger ledger;
    Slice one = slice(second, {holder("a")});
    one.elsewhere[tenant("a")].launches = 3;
    ledger.add(one);
    CHECK(ledger.tenants().at(tenant("a")).quiet_ns == 0);
    CHECK(ledger.tenants().at(tenant("a")).elsewhere.launches == 3);
}

TEST_CASE("parts add up to the amount", "[spend]")
{
    using Parts = std::vector<uint64_t>;
    CHECK(divided(10, Parts{1, 1, 1}) == Parts{4, 3, 3});
    CHECK(divided(10, Parts{1, 2, 2}) == Parts{2, 4, 4});
    CHECK(divided(100, Parts{1, 0, 999}) == Parts{0, 0, 100});
    CHECK(divided(7, Parts{0, 0}) == Parts{4, 3}); // all weights are 0: equal parts
    CHECK(divided(0, Parts{3, 5}) == Parts{0, 0});
    CHECK(divided(5, Parts{}).empty());
    CHECK(divided(UINT64_MAX, Parts{UINT64_MAX, UINT64_MAX}) == Parts{UINT64_MAX / 2 + 1, UINT64_MAX / 2});
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000; i++) {
        Parts weights(1 + random() % 20);
        for (uint64_t& weight : weights)
            weight = random() >> (random() % 64);
        const uint64_t amount = random() >> (random() % 64);
        const Parts parts = divided(amount, weights);
        REQUIRE(std::accumulate(parts.begin(), parts.end(), uint64_t{0}) == amount);
    }
}
