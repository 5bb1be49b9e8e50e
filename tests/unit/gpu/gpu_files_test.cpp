// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu_files.hpp"

#include "base/fd.hpp"
#include "tests/unit/proc/threads_of_child.hpp"
#include "tests/unit/who/container_host.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

using gpusnoop::Fd;
using gpusnoop::open_gpu_files;

namespace {

using Minors = std::set<unsigned>;

// Creates a device node and opens it with O_PATH, which needs no driver.
Fd node(const std::filesystem::path& path, unsigned major, unsigned number)
{
    if (mknod(path.c_str(), S_IFCHR | 0600, makedev(major, number)) != 0)
        SKIP("cannot create device files here");
    return Fd(open(path.c_str(), O_PATH | O_CLOEXEC));
}

} // namespace

TEST_CASE("open GPU files of a process are found by their device numbers", "[driver]")
{
    const gpusnoop::container_host::Host folder;
    CHECK(open_gpu_files(getpid()) == Minors{});
    const Fd three = node(folder.path("nvidia0"), 195, 3); // a container may use another name for minor 3
    CHECK(open_gpu_files(getpid()) == Minors{3});
    const Fd again(dup(three.get())), other = node(folder.path("nvidia1"), 195, 1);
    CHECK(open_gpu_files(getpid()) == Minors{1, 3});
}

TEST_CASE("open GPU files of a process whose main thread has exited", "[driver]")
{
    const gpusnoop::container_host::Host folder;
    const Fd three = node(folder.path("nvidia0"), 195, 3);
    const gpusnoop::ThreadsOfChild child(1);
    child.end_main();
    CHECK(open_gpu_files(child.pid()) == Minors{3});
}

TEST_CASE("files that are only named like a GPU's are ignored", "[driver]")
{
    const gpusnoop::container_host::Host folder;
    folder.write("nvidia5", "");
    const Fd file(open(folder.path("nvidia5").c_str(), O_RDONLY | O_CLOEXEC));
    const Fd control = node(folder.path("nvidiactl"), 195, 255), null = node(folder.path("nvidia6"), 1, 3);
    CHECK(open_gpu_files(getpid()) == Minors{});
}

TEST_CASE("open GPU files are unknown if the process has exited or has too many files", "[driver]")
{
    CHECK(!open_gpu_files(1 << 30));
    const gpusnoop::container_host::Host folder;
    for (int i = 0; i < 5000; i++)
        folder.link("7/fd/" + std::to_string(i), "/dev/null");
    CHECK(!open_gpu_files(7, folder.path("")));
}
