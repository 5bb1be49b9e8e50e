// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_files.hpp"

#include "base/fd.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/proc/threads_of_child.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

using Minors = std::set<unsigned>;
using Instances = std::set<MigAccess>;

// Creates a device node and opens it with O_PATH, which needs no driver.
Fd node(const std::string& path, unsigned major, unsigned number)
{
    if (mknod(path.c_str(), S_IFCHR | 0600, makedev(major, number)) != 0)
        SKIP("cannot create device files here");
    return Fd(open(path.c_str(), O_PATH | O_CLOEXEC));
}

} // namespace

TEST_CASE("open GPU files of a process are found by their device numbers", "[driver]")
{
    const Folder folder;
    CHECK(open_gpu_files(getpid()) == Minors{});
    const Fd three = node(folder.file("nvidia0"), 195, 3); // a container may use another name for minor 3
    CHECK(open_gpu_files(getpid()) == Minors{3});
    const Fd again(dup(three.get())), other = node(folder.file("nvidia1"), 195, 1);
    CHECK(open_gpu_files(getpid()) == Minors{1, 3});
}

TEST_CASE("open GPU files of a process whose main thread has exited", "[driver]")
{
    const Folder folder;
    const Fd three = node(folder.file("nvidia0"), 195, 3);
    const ThreadsOfChild child(1);
    child.end_main();
    CHECK(open_gpu_files(child.pid()) == Minors{3});
}

TEST_CASE("files that are only named like a GPU's are ignored", "[driver]")
{
    const Folder folder;
    folder.file("nvidia5", "");
    const Fd file(open(folder.file("nvidia5").c_str(), O_RDONLY | O_CLOEXEC));
    const Fd control = node(folder.file("nvidiactl"), 195, 255), null = node(folder.file("nvidia6"), 1, 3);
    CHECK(open_gpu_files(getpid()) == Minors{});
}

TEST_CASE("open GPU files are unknown if the process has exited or has too many files", "[driver]")
{
    CHECK(!open_gpu_files(1 << 30));
    const Folder folder;
    for (int i = 0; i < 5000; i++)
        folder.link("7/fd/" + std::to_string(i), "/dev/null");
    CHECK(!open_gpu_files(7, folder.path()));
}

TEST_CASE("minor numbers of capability files are parsed", "[driver]")
{
    const auto minors =
        parse_mig_minors("config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"
                         "gpu31/gi14/ci7/access 4321\ngpu0/gi\ngpu0/gi1/ci0/access x\ngpu99999/gi1/access 5\n");
    CHECK(minors == std::map<unsigned, MigAccess>{{12, {0, 1}}, {13, {0, 1, 0}}, {4321, {31, 14, 7}}});
    CHECK(parse_mig_minors("").empty());
    CHECK(most_specific({{0, 1}, {0, 1, 0}, {0, 1, 2}, {0, 2}, {1, 2, 3}}) ==
          Instances{{0, 1, 0}, {0, 1, 2}, {0, 2}, {1, 2, 3}});
}

TEST_CASE("MIG instances that a process may use", "[driver]")
{
    const Folder host;
    CHECK(MigFiles(host.path()).access_of(getpid()).empty()); // the driver is not loaded
    host.file("proc/devices", "Character devices:\n195 nvidia\n236 nvidia-caps\n\nBlock devices:\n");
    host.file("proc/driver/nvidia-caps/mig-minors",
              "config 1\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu3/gi2/access 30\n");
    const MigFiles files(host.path());
    CHECK(files.access_of(getpid()).empty());
    const Fd instance = node(host.file("nvidia-cap12"), 236, 12), compute = node(host.file("nvidia-cap13"), 236, 13),
             config = node(host.file("nvidia-cap1"), 236, 1), gpu = node(host.file("nvidia3"), 195, 30);
    CHECK(files.access_of(getpid()) == Instances{{0, 1, 0}}); // not the GPU instance, although its file is open
    const Fd other = node(host.file("nvidia-cap30"), 236, 30);
    CHECK(files.access_of(getpid()) == Instances{{0, 1, 0}, {3, 2}});
}
