// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup_facts.hpp"

#include "tests/unit/base/folder.hpp"

using namespace gpusnoop;

namespace {

// A folder with files like those of mounted cgroup hierarchies.
struct Hierarchies : Folder {
    CgroupMount mount(const std::string& name, bool v2, const std::string& root = "/") const
    {
        return {file(name), root, v2, v2 ? CONTROLLER_NONE : CONTROLLER_CPU};
    }
};

} // namespace

TEST_CASE("quotas, flat files and pressure files are parsed")
{
    CHECK(parse_quota("20000 100000\n") == 0.2);
    CHECK(parse_quota("400000\n100000\n") == 4);
    for (const char* none : {"max 100000\n", "-1\n100000\n", "", "5", "5 0\n", "5 x\n"})
        CHECK(!parse_quota(none));
    CHECK(parse_flat("nr_periods 9\nnr_throttled 7\nnr_throttled_more 1\n", "nr_throttled") == 7);
    CHECK(!parse_flat("nr_throttled_more 1\nnr_throttled\n", "nr_throttled"));
    CHECK(parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\nfull avg10=0.00 total=9\n") == 4711);
    CHECK(!parse_pressure("full avg10=0.00 total=9\n"));
    CHECK(!parse_pressure(""));
}

TEST_CASE("v2: the lowest quota of a cgroup and its ancestors, and their throttled periods")
{
    const Hierarchies of;
    of.file("v2/pod/cpu.max", "200000 100000\n");
    of.file("v2/pod/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 40\n");
    of.file("v2/pod/box/cpu.max", "50000 100000\n");
    of.file("v2/pod/box/cpu.stat", "nr_throttled 2\nthrottled_usec 10\n");
    of.file("v2/pod/box/free/cpu.max", "max 100000\n");
    of.file("v2/pod/box/free/cpu.stat", "nr_throttled 1000\nthrottled_usec 1000\n");
    of.file("v2/pod/box/free/io.pressure", "some avg10=0.00 total=12\n");
    const CgroupFacts facts = CgroupFiles({of.mount("v2", true)}).of("0::/pod/box/free\n");
    CHECK(facts.quota_cpus == 0.5);
    CHECK(facts.throttles == 5);
    CHECK(facts.throttled_ns == 50'000);
    CHECK(facts.stalled_us[PRESSURE_IO] == 12);
    CHECK(!facts.stalled_us[PRESSURE_CPU]);
    CHECK(!facts.machine_wide);
}

TEST_CASE("v1 hierarchies are used if the v2 hierarchy has no controllers")
{
    const Hierarchies of;
    of.file("cpu/box/cpu.cfs_quota_us", "150000\n");
    of.file("cpu/box/cpu.cfs_period_us", "100000\n");
    of.file("cpu/box/cpu.stat", "nr_throttled 7\nthrottled_time 123456\n");
    const CgroupFiles files({of.mount("v2", true), of.mount("cpu", false)});
    const CgroupFacts facts = files.of("9:name=systemd:/\n4:cpu,cpuacct:/box\n0::/other\n");
    CHECK(facts.quota_cpus == 1.5);
    CHECK(facts.throttles == 7);
    CHECK(facts.throttled_ns == 123456);
    CHECK(facts.machine_wide);
}

TEST_CASE("the frozen cgroup is found, also if it is an ancestor")
{
    const Hierarchies of;
    CgroupMount freezer = of.mount("freezer", false);
    freezer.controller = CONTROLLER_FREEZER;
    const CgroupFiles files({of.mount("v2", true), of.mount("cpu", false), freezer});
    const char* const lines = "6:freezer:/jobs/17\n4:cpu,cpuacct:/box\n0::/pod/box\n";
    CHECK(files.frozen_by(lines).empty());
    of.file("v2/pod/cgroup.freeze", "0\n");
    of.file("v2/pod/box/cgroup.freeze", "1\n");
    of.file("v2/pod/box/cgroup.events", "populated 1\nfrozen 0\n");
    CHECK(files.frozen_by(lines).empty()); // still freezing
    of.file("v2/pod/box/cgroup.events", "populated 1\nfrozen 1\n");
    CHECK(files.frozen_by(lines) == "/pod/box");
    of.file("v2/pod/box/cgroup.freeze", "0\n");
    of.file("v2/pod/cgroup.freeze", "1\n");
    CHECK(files.frozen_by(lines) == "/pod");
    of.file("v2/pod/cgroup.freeze", "0\n"); // the frozen ancestor is above the mount, so it is not visible
    CHECK(files.frozen_by(lines) == "/pod/box");
    of.file("v2/pod/box/cgroup.events", "populated 1\nfrozen 0\n");

    of.file("freezer/jobs/17/freezer.state", "THAWED\n");
    CHECK(files.frozen_by(lines).empty());
    of.file("freezer/jobs/17/freezer.state", "FROZEN\n");
    of.file("freezer/jobs/17/freezer.self_freezing", "0\n");
    of.file("freezer/jobs/freezer.self_freezing", "1\n");
    CHECK(files.frozen_by(lines) == "/jobs");
}

TEST_CASE("nothing is known about a cgroup outside of the mounted hierarchies")
{
    const Hierarchies of;
    of.file("v2/cpu.max", "50000 100000\n");
    const CgroupFiles files({of.mount("v2", true, "/docker/abc")});
    CHECK(files.of("0::/docker/abc\n").quota_cpus == 0.5);
    for (const char* lines : {"0::/../other\n", "0::/docker\n", "0::/docker/abcdef\n", "", "0::", ":::\n"}) {
        const CgroupFacts facts = files.of(lines);
        CHECK(!facts.quota_cpus);
        CHECK(!facts.throttles);
    }
    CHECK(!CgroupFiles({}).of("0::/\n").throttles);
}
