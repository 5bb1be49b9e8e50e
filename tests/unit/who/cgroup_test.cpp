// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup.hpp"

#include "base/error.hpp"
#include "base/options.hpp"
#include "rows/who.hpp"
#include "tests/unit/base/folder.hpp"
#include "who/attribution.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

constexpr std::string_view hybrid = R"(21 1 0:19 / / rw - ext4 /dev/root rw
30 24 0:26 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/systemd rw shared:6 - cgroup cgroup rw,xattr,name=systemd
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/memory rw shared:7 master:2 - cgroup cgroup rw,memory
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
)";

cgroup_path path_of(std::initializer_list<std::string_view> leaf_first, bool complete = true)
{
    cgroup_path path{};
    for (std::string_view name : leaf_first) {
        memcpy(path.names + path.bytes, name.data(), name.size());
        path.bytes += static_cast<__u32>(name.size() + 1);
    }
    path.complete = complete;
    return path;
}

process_record record(cgroups ids, const cgroup_path& v2, const cgroup_path& v1 = {})
{
    process_record record{};
    record.cgroups = ids;
    record.v2 = v2;
    record.v1 = v1;
    return record;
}

const std::string id(64, 'c');

} // namespace

TEST_CASE("cgroup mounts: v2 first, then the v1 hierarchies that the BPF side can read")
{
    const std::vector<CgroupMount> expected{
        {"/sys/fs/cgroup/unified", "/", true, CONTROLLER_NONE},
        {"/sys/fs/cgroup/memory", "/", false, CONTROLLER_MEMORY},
        {"/sys/fs/cgroup/cpu,cpuacct", "/", false, CONTROLLER_CPU},
        {"/sys/fs/cgroup/systemd", "/", false, CONTROLLER_NONE},
    };
    CHECK(parse_cgroup_mounts(hybrid, "/") == expected);
    CHECK(v1_controller(expected) == CONTROLLER_MEMORY);
    CHECK(v1_controller({expected[0]}) == CONTROLLER_NONE);
}

TEST_CASE("cgroup mounts outside the host's root are ignored; mounts of whole hierarchies are preferred")
{
    constexpr std::string_view text = R"(1 0 0:1 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw
2 0 0:1 / /host/sys/fs/cgroup ro - cgroup2 cgroup rw
3 0 0:1 / /hostile/sys/fs/cgroup ro - cgroup2 cgroup rw
)";
    REQUIRE(parse_cgroup_mounts(text, "/host").size() == 1);
    CHECK(parse_cgroup_mounts(text, "/host")[0].path == "/host/sys/fs/cgroup");
    REQUIRE(parse_cgroup_mounts(text, "/").size() == 1);
    CHECK(parse_cgroup_mounts(text, "/")[0].path == "/host/sys/fs/cgroup");
}

TEST_CASE("cgroup mounts: escapes and malformed lines")
{
    const auto mounts =
        parse_cgroup_mounts("1 0 0:1 / /a\\040b\\134 rw - cgroup2 none rw\nbroken\n - \n1 2 3 - cgroup2\n"
                            "\n9 9 9 9 \\0 x - cgroup x \\",
                            "/");
    REQUIRE(!mounts.empty());
    CHECK(mounts[0].path == "/a b\\");
}

TEST_CASE("names below a cgroup count as chosen by the owner of its directory")
{
    if (geteuid() != 0)
        SKIP("only root can change the owner of directories");
    const Folder folder;
    const std::string service = "/system.slice/train.service", scope = "/docker-" + id + ".scope";
    folder.folder(service + scope);
    const std::string root = folder.path(), directory = root + service;
    const auto unit_and_container = [&](const std::string& lines, const std::string& mounted = "/") {
        const ProcessCgroups found =
            cgroups_of(lines, {{root, mounted, true, CONTROLLER_NONE}, {root, "/", false, CONTROLLER_MEMORY}});
        const CgroupOwner& owner = found.v1.empty() ? found.v2.owner : found.v1.front().owner;
        return owner.unit + " " + owner.container_id.substr(0, 1) + (owner.named_by_user ? " of user" : "");
    };
    const std::string line = "0::" + service + scope + "\n", v1 = "4:memory,x:" + service + scope + "\n";

    CHECK(unit_and_container(line) == "train.service c");
    CHECK(unit_and_container(v1) == "train.service c");
    REQUIRE(chown(directory.c_str(), 999, 0) == 0);
    CHECK(unit_and_container(line) == "train.service c of user");
    CHECK(unit_and_container(v1) == "train.service c of user");
    CHECK(unit_and_container("0::/a" + service + scope, "/a") == "train.service c of user");
    CHECK(unit_and_container("0::/../.." + service + scope, "/../..") == "train.service c of user");
    CHECK(unit_and_container("0::/.." + service + scope, "/../..") ==
          "train.service c"); // the directory is not mounted, so only the path decides
    CHECK(unit_and_container("0::" + service) == "train.service ");
    REQUIRE(chown(directory.c_str(), 0, 0) == 0);
    REQUIRE(chmod(directory.c_str(), 0775) == 0);
    CHECK(unit_and_container(line) == "train.service ");
    REQUIRE(chmod(directory.c_str(), 0755) == 0);
    CHECK(unit_and_container("0::/system.slice/gone.service" + scope) == "gone.service ");
    CHECK(unit_and_container("0::/system.slice" + scope) == " c"); // also removed, but root chose its name
}

TEST_CASE("-c: a malformed argument is a usage error, an argument without a match an error")
{
    for (const char* argument : {"", "pod:", "pod:x", "pod:/x", "pod:x/", "pod:a/b/c"}) {
        CAPTURE(argument);
        CHECK_THROWS_AS(CgroupTarget(argument, "/"), UsageError);
    }
    for (const char* argument :
         {"/etc", "/nonexistent", "no-such-cgroup", "deadbeefdeadbeef", "pod:no/such", "../../etc"}) {
        CAPTURE(argument);
        CHECK_THROWS_AS(CgroupTarget(argument, "/"), Error);
    }
}

TEST_CASE("the owner is taken from the more informative hierarchy")
{
    Attribution attribution("/nonexistent");
    const std::string scope = "docker-" + id + ".scope";
    attribution.learn(record({1, 2}, path_of({}), path_of({id, "docker"})));
    attribution.learn(record({3, 4}, path_of({scope, "system.slice"}), path_of({"user.slice"})));
    attribution.learn(record({5, 6}, path_of({"a"}), path_of({"b"})));
    attribution.learn(record({7, 0}, path_of({}), path_of({id, "docker"}))); // v1 is not used

    CHECK(attribution.owner({1, 2}).cgroup == "/docker/" + id);
    CHECK(attribution.owner({1, 2}).where.container_id == id);
    CHECK(attribution.owner({3, 4}).cgroup == "/system.slice/" + scope);
    CHECK(attribution.owner({3, 4}).text() == "docker:" + id.substr(0, 12));
    CHECK(attribution.owner({5, 6}).cgroup == "/a");
    CHECK(attribution.owner({7, 0}).cgroup == "/");
    CHECK(attribution.owner({7, 0}).text().empty());
    CHECK(attribution.owner({8, 9}).cgroup.empty());
}

TEST_CASE("names chosen by root take precedence over names chosen by a user")
{
    Attribution attribution("/nonexistent");
    cgroup_path of_user = path_of({"docker-" + id + ".scope", "a", "train.service"});
    of_user.delegated = 2;
    of_user.user = 999;
    attribution.learn(record({1, 2}, of_user, path_of({"job_7", "uid_999", "slurm"})));
    CHECK(attribution.owner({1, 2}).text() == "slurm:7");
    attribution.learn(record({3, 4}, of_user, path_of({"user.slice"})));
    CHECK(attribution.owner({3, 4}).text() == "docker:cccccccccccc (uid 999)");
    of_user.user = CGROUP_ANY_USER;
    attribution.learn(record({5, 6}, of_user, path_of({"user.slice"})));
    CHECK(attribution.owner({5, 6}).text() == "train.service");
}

TEST_CASE("a truncated path is marked, and an unterminated one is bounded")
{
    Attribution attribution("/nonexistent");
    attribution.learn(record({1, 0}, path_of({id, "docker"}, false)));
    CHECK(attribution.owner({1, 0}).cgroup == ".../docker/" + id);
    CHECK(!attribution.owner({1, 0}).container()); // the missing part of the path may be a user's cgroup
    cgroup_path inner_cut = path_of({"middle", "a.service"});
    inner_cut.cut = 1;
    attribution.learn(record({3, 0}, inner_cut));
    CHECK(attribution.owner({3, 0}).cgroup == "/a.service/middle/...");
    CHECK(attribution.owner({3, 0}).where.unit == "a.service");
    cgroup_path full{};
    memset(full.names, 'x', sizeof(full.names));
    full.bytes = UINT32_MAX;
    full.complete = 1;
    attribution.learn(record({2, 0}, full));
    CHECK(attribution.owner({2, 0}).cgroup == "/" + std::string(sizeof(full.names), 'x'));
}

TEST_CASE("the text of an owner")
{
    Owner owner;
    CHECK(owner.text().empty());
    owner.where.unit = "sshd.service";
    CHECK(owner.text() == "sshd.service");
    owner.where.uid = 1000;
    CHECK(owner.text() == "sshd.service (uid 1000)");
    owner.where.slurm_job = "4711";
    CHECK(owner.text() == "slurm:4711");
    owner.where.slurm_step = "0";
    CHECK(owner.text() == "slurm:4711.0");
    owner.where.container_id = id;
    CHECK(owner.text() == "container:" + id.substr(0, 12) + " (uid 1000)");
    owner.where.uid.reset();
    CHECK(owner.text() == "container:" + id.substr(0, 12));
    owner.names.runtime = "podman";
    owner.names.container = "web";
    CHECK(owner.text() == "podman:web");
    owner.where.pod_uid = "01234567-89ab-cdef-0123-456789abcdef";
    CHECK(owner.text() == "pod 01234567/web");
    CHECK(owner.pod_name() == owner.where.pod_uid);
    owner.names.pod = "llm";
    owner.names.pod_namespace = "serving";
    CHECK(owner.text() == "serving/llm/web");
}

TEST_CASE("a row of several owners shows the fields that are equal")
{
    Owner a, b;
    a.where.container_id = std::string(64, 'a');
    b.where.container_id = std::string(64, 'b');
    a.names.pod_namespace = b.names.pod_namespace = "research";
    a.names.pod = "one";
    WhoSeen seen;
    seen.owners = {&a, &b};
    CHECK(owner_cell(seen, OwnerPart::pod_namespace) == Cell(std::string("research")));
    CHECK(owner_cell(seen, OwnerPart::container_id) == Cell());
    CHECK(owner_cell(seen, OwnerPart::pod) == Cell()); // only one of them has a pod
    CHECK(owner_cell(WhoSeen{}, OwnerPart::cgroup) == Cell());
}

TEST_CASE("a cgroup cell has short ids; a long path is cut at its start, never within a character")
{
    Owner owner;
    owner.cgroup = "/docker/" + id;
    CHECK(owner_cell(owner, OwnerPart::cgroup_text) == Cell("/docker/" + id.substr(0, 12)));
    owner.cgroup = "/" + std::string(100, 'z') + "/end";
    CHECK(owner_cell(owner, OwnerPart::cgroup_text) == Cell("..." + std::string(53, 'z') + "/end"));
    std::string wide;
    for (int i = 0; i < 60; i++)
        wide += "\u00e4";
    owner.cgroup = wide;
    const std::string cut = std::get<std::string>(owner_cell(owner, OwnerPart::cgroup_text));
    CHECK(cut == "..." + wide.substr(wide.size() - 56));
}
