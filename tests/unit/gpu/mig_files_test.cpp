// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_files.hpp"

#include "base/fd.hpp"
#include "tests/unit/who/container_host.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

using All = std::set<MigAccess>;

Fd node(const std::filesystem::path& path, unsigned major, unsigned number)
{
    if (mknod(path.c_str(), S_IFCHR | 0600, makedev(major, number)) != 0)
        SKIP("device files cannot be made here");
    return Fd(open(path.c_str(), O_PATH | O_CLOEXEC));
}

} // namespace

TEST_CASE("minor numbers of capability files are parsed", "[driver]")
{
    const auto minors =
        parse_mig_minors("config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"
                         "gpu31/gi14/ci7/access 4321\ngpu0/gi\ngpu0/gi1/ci0/access x\ngpu99999/gi1/access 5\n");
    CHECK(minors == std::map<unsigned, MigAccess>{{12, {0, 1}}, {13, {0, 1, 0}}, {4321, {31, 14, 7}}});
    CHECK(parse_mig_minors("").empty());
    CHECK(most_specific({{0, 1}, {0, 1, 0}, {0, 1, 2}, {0, 2}, {1, 2, 3}}) ==
          All{{0, 1, 0}, {0, 1, 2}, {0, 2}, {1, 2, 3}});
}

TEST_CASE("MIG instances that a process may use", "[driver]")
{
    const container_host::Host host;
    CHECK(MigFiles(host.path("").string()).access_of(getpid()).empty()); // the driver is not loaded
    host.write("proc/devices", "Character devices:\n195 nvidia\n236 nvidia-caps\n\nBlock devices:\n");
    host.write("proc/driver/nvidia-caps/mig-minors",
               "config 1\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu3/gi2/access 30\n");
    const MigFiles files(host.path("").string());
    CHECK(files.access_of(getpid()).empty());
    const Fd instance = node(host.path("nvidia-cap12"), 236, 12), compute = node(host.path("nvidia-cap13"), 236, 13),
             config = node(host.path("nvidia-cap1"), 236, 1), gpu = node(host.path("nvidia3"), 195, 30);
    CHECK(files.access_of(getpid()) == All{{0, 1, 0}}); // not the GPU instance, although its file is open
    const Fd other = node(host.path("nvidia-cap30"), 236, 30);
    CHECK(files.access_of(getpid()) == All{{0, 1, 0}, {3, 2}});
}
