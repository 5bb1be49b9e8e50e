// SPDX-License-Identifier: Apache-2.0
#include "output/metrics_page.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <string>

using namespace gpusnoop;

namespace {

constexpr uint64_t minute = 60'000'000'000;

const Column pods[] = {{"", "by", Unit::text},          {"", "namespace", Unit::text},
                       {"", "pod", Unit::text},         {"", "pid", Unit::count}, // set if the pod has only one process
                       {"", "launches", Unit::count},   {"", "blocked_ns", Unit::count},
                       {"", "live_bytes", Unit::bytes}, {"", "h2d_bytes", Unit::count}};
const Column sums[] = {{"", "by", Unit::text}, {"", "lost", Unit::count}, {"", "own_cpu_percent", Unit::percent}};
const Column gpus[] = {{"", "by", Unit::text},
                       {"", "gpu_index", Unit::count},
                       {"", "gpu_name", Unit::text},
                       {"", "gpu_percent", Unit::percent}};
const Column verdicts[] = {{"", "by", Unit::text},
                           {"", "pid", Unit::count},
                           {"", "pod", Unit::text},
                           {"", "rule", Unit::text},
                           {"", "severity", Unit::text}};

Row pod(std::string name, uint64_t launches, uint64_t blocked_ns, const Cell& live = {})
{
    return {"namespace,pod,container", "research", std::move(name), 7UL, launches, blocked_ns, live, 0UL};
}

// Returns the series of a page, without comments and without the families that every page has.
std::string figures(const MetricsPage& page)
{
    std::string all;
    const std::string text = page.text();
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        const std::string line = text.substr(at, end - at + 1);
        if (!line.starts_with('#') && !line.starts_with("gpusnoop_rows_") && !line.starts_with("gpusnoop_last_") &&
            !line.starts_with("gpusnoop_build_") && line.find("direction=") == line.npos)
            all += line;
    }
    return all;
}

} // namespace

TEST_CASE("metrics: counters are summed over reports, gauges have the values of the last report")
{
    MetricsPage page("cudatop", "1");
    page.begin_rows(0, 0);
    page.add(pods, pod("a", 10, 1'500'000'000, AtLeast{4096}));
    page.add(pods, pod("b", 1, 1));
    page.end_report();
    page.begin_rows(1, 0);
    page.add(pods, pod("a", 5, 20, 100UL));
    page.add(pods, pod("a", 2, 0, 11UL)); // a restarted pod of the same name
    page.end_report();
    CHECK(figures(page) == "gpusnoop_kernel_launches_total{namespace=\"research\",pod=\"a\"} 17\n"
                           "gpusnoop_kernel_launches_total{namespace=\"research\",pod=\"b\"} 1\n"
                           "gpusnoop_sync_wait_seconds_total{namespace=\"research\",pod=\"a\"} 1.500000020\n"
                           "gpusnoop_sync_wait_seconds_total{namespace=\"research\",pod=\"b\"} 0.000000001\n"
                           "gpusnoop_live_bytes{namespace=\"research\",pod=\"a\"} 111\n");
}

TEST_CASE("metrics: series without rows expire and restart from zero")
{
    MetricsPage page("cudatop", "1");
    page.begin_rows(0, 0);
    page.add(pods, pod("a", 10, 0, 1UL));
    page.end_report();
    for (uint64_t minutes = 1; minutes <= 10; minutes++) {
        page.begin_rows(minutes * minute, 0);
        page.end_report();
        CHECK(page.text().find("gpusnoop_kernel_launches_total{namespace=\"research\",pod=\"a\"} 10\n") !=
              std::string::npos);
        CHECK(page.text().find("gpusnoop_live_bytes{") == std::string::npos); // a gauge without a row is omitted
    }
    page.begin_rows(10 * minute + 1, 0);
    page.end_report();
    CHECK(figures(page).empty());
    page.add(pods, pod("a", 3, 0));
    CHECK(page.text().find("pod=\"a\"} 3\n") != std::string::npos);
}

TEST_CASE("metrics: totals, GPUs and diagnoses")
{
    MetricsPage page("cudatop", "1");
    page.begin_rows(0, 1'795'695'769'595'418'301);
    page.add(sums, {"total", 7UL, 12.5});
    page.add(sums, {"total", 9UL, 25.0}); // replaces the previous total
    page.add(gpus, {"gpu", 3UL, "H100", 50.0});
    page.add(gpus, {"gpu", 4UL, "H100", Cell()}); // utilization unknown
    for (const uint64_t pid : {1, 2, 3})
        page.add(verdicts, {"diagnosis", pid, std::string(pid == 3 ? "b" : "a"), "hangs", "error"});
    page.end_report();
    CHECK(figures(page) == "gpusnoop_diagnosis{pod=\"a\",rule=\"hangs\",severity=\"error\"} 2\n"
                           "gpusnoop_diagnosis{pod=\"b\",rule=\"hangs\",severity=\"error\"} 1\n"
                           "gpusnoop_gpu_utilization_ratio{gpu=\"3\",model=\"H100\"} 0.5\n"
                           "gpusnoop_lost_events_total 9\n"
                           "gpusnoop_own_cpu_ratio 0.25\n");
    CHECK(page.text().find("gpusnoop_last_report_timestamp_seconds{tool=\"cudatop\"} 1795695769.595418301\n") !=
          std::string::npos);
}

TEST_CASE("metrics: names are escaped in labels")
{
    MetricsPage page("cudatop", "1");
    page.begin_rows(0, 0);
    page.add(pods, pod("a\"} 1\nx \\ \xff", 1, 0));
    const std::string text = page.text();
    CHECK(text.find(R"(pod="a\"} 1\\x0Ax \\ \\xFF"} 1)") != std::string::npos);
    for (size_t at = 0; (at = text.find('\n', at)) != text.npos && ++at < text.size();)
        CHECK((text.compare(at, 2, "# ") == 0 || text.compare(at, 9, "gpusnoop_") == 0));
}

TEST_CASE("metrics: rows beyond the limit are counted, and each family is described once")
{
    MetricsPage page("cudatop", "1");
    page.begin_rows(0, 0);
    for (int i = 0; i < 5100; i++)
        page.add(pods, pod(fmt::format("pod-{}", i), 1, 0));
    const std::string text = page.text();
    CHECK(text.find("gpusnoop_rows_left_out_total{tool=\"cudatop\"} 100\n") != std::string::npos);
    CHECK(text.find("# TYPE gpusnoop_copy_bytes_total") == text.rfind("# TYPE gpusnoop_copy_bytes_total"));
    CHECK(text.ends_with("\n"));
}

TEST_CASE("metrics: GPU time and cost of owners")
{
    const Column columns[] = {{"", "of", Unit::text},           {"", "namespace", Unit::text},
                              {"", "team", Unit::text},         {"", "device", Unit::text},
                              {"", "currency", Unit::text},     {"", "device_time_ns", Unit::count},
                              {"", "used_ns", Unit::count},     {"", "idle_ns", Unit::count},
                              {"", "cost_micros", Unit::count}, {"", "idle_cost_micros", Unit::count}};
    MetricsPage page("gpuspend", "1");
    for (int report = 0; report < 2; report++) {
        page.begin_rows(0, 0);
        page.add(columns, {"tenant", "a", "t", "GPU-1", "USD", 9UL, 1'500'000'000UL, 5UL, 1'000'007UL, 3UL});
        page.add(columns, {"idle", {}, {}, {}, "USD", 5UL, {}, {}, 3UL, {}});
        page.add(columns, {"unallocated", {}, {}, {}, "USD", 8UL, {}, {}, 4UL, {}});
        page.add(columns, {"total", {}, {}, {}, "USD", 22UL, 9UL, 5UL, 1'000'014UL, 3UL});
        page.end_report();
    }
    const std::string who = "{namespace=\"a\",team=\"t\",UUID=\"GPU-1\",currency=\"USD\"} ";
    CHECK(figures(page) == "gpusnoop_gpu_used_seconds_total" + who + "3.000000000\n" +
                               "gpusnoop_gpu_idle_seconds_total" + who + "0.000000010\n" +
                               "gpusnoop_gpu_unallocated_seconds_total{currency=\"USD\"} 0.000000016\n" +
                               "gpusnoop_gpu_used_cost_total" + who + "2.000014\n" + "gpusnoop_gpu_idle_cost_total" +
                               who + "0.000006\n" + "gpusnoop_gpu_unallocated_cost_total{currency=\"USD\"} 0.000008\n");
    CHECK(page.text().find("gpusnoop_build_info{tool=\"gpuspend\",version=\"1\"} 1\n") != std::string::npos);
}
