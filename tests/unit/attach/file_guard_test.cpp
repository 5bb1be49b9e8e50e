// SPDX-License-Identifier: Apache-2.0
#include "attach/file_guard.hpp"

#include "tests/unit/base/folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <string>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

using namespace gpusnoop;

namespace {

Fd path_only(const std::string& path)
{
    return Fd(open(path.c_str(), O_PATH | O_CLOEXEC));
}

FileId id_of(const Fd& file)
{
    struct statfs st {};
    fstatfs(file.get(), &st);
    return {.file_system = static_cast<uint64_t>(st.f_type)};
}

bool becomes_readable(int fd)
{
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 10000) == 1;
}

} // namespace

TEST_CASE("a writer waits until the lease is released", "[file_guard]")
{
    const Folder folder;
    const std::string path = folder.file("library", "old");
    WriteSignals signals;
    Fd file = path_only(path);
    FileGuard guard(file, id_of(file));
    if (guard.needs_watch())
        SKIP("no leases on this file system");
    CHECK_FALSE(guard.is_open());
    CHECK_FALSE(guard.is_broken(file, true));

    std::jthread writer([&] { std::ofstream(path) << "new text"; });
    REQUIRE(becomes_readable(signals.lease_descriptor()));
    CHECK(signals.drain_leases());
    CHECK(guard.is_broken(file, false));
    CHECK(std::filesystem::file_size(path) == 3);
    CHECK_FALSE(guard.retake(file)); // the writer already has the file open
    guard.release(file);
    CHECK(guard.is_open());
    CHECK_FALSE(guard.is_broken(file, true)); // reported only once
    writer.join();
    CHECK(std::filesystem::file_size(path) == 8);
    CHECK(guard.retake(file));
    CHECK_FALSE(guard.is_open());
    CHECK_FALSE(guard.is_broken(file, true));
}

TEST_CASE("a file that is open for writing is guarded once it is closed", "[file_guard]")
{
    const Folder folder;
    const std::string path = folder.file("library", "text");
    const WriteSignals signals;
    Fd writer(open(path.c_str(), O_RDWR | O_CLOEXEC));
    Fd file = path_only(path);
    FileGuard guard(file, id_of(file));
    if (guard.needs_watch())
        SKIP("no leases on this file system");
    CHECK(guard.is_open());
    CHECK_FALSE(guard.retake(file));
    writer = {};
    CHECK(guard.retake(file));
    CHECK_FALSE(guard.is_open());
}

TEST_CASE("without a lease, a write is detected afterwards, by inotify or by the modification time", "[file_guard]")
{
    const Folder folder;
    const std::string path = folder.file("library", "text");
    WriteSignals signals;
    Fd file = path_only(path);
    FileGuard guard(file, {}); // unknown file system
    CHECK(guard.needs_watch());
    CHECK_FALSE(guard.is_open());
    guard.set_watch(inotify_add_watch(signals.watch_descriptor(), path.c_str(), IN_MODIFY | IN_CLOSE_WRITE));
    std::ofstream(path) << "longer text";
    CHECK(guard.is_broken(file, true));
    CHECK_FALSE(guard.is_broken(file, false));
    REQUIRE(becomes_readable(signals.watch_descriptor()));
    while (const auto event = signals.next_event()) {
        CHECK(event->first == guard.watch());
        guard.on_watch_event(event->second);
    }
    CHECK(guard.is_broken(file, false));
    guard.release(file);
    CHECK_FALSE(guard.retake(file));
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    CHECK(guard.retake(file)); // the writer closed the file over a second ago
    CHECK_FALSE(guard.is_broken(file, true));
}
