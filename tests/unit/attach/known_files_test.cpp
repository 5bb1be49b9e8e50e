// SPDX-License-Identifier: Apache-2.0
#include "attach/known_files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <unistd.h>

using namespace gpusnoop;

namespace {

constexpr pid_t no_process = 0x7fffffff; // larger than any process id

struct Known {
    Complaints complaints;
    KnownFiles files{complaints};

    CudaFile& add(uint64_t inode, pid_t user, uint64_t owner = 0)
    {
        auto file = std::make_unique<CudaFile>();
        file->id.inode = inode;
        file->users.insert(user);
        file->owner = owner;
        return files.add(std::move(file));
    }
};

} // namespace

TEST_CASE("a file is found by id and by number, and numbers are never reused", "[known_files]")
{
    Known known;
    CudaFile& first = known.add(1, getpid());
    CHECK(known.files.find(first.id) == &first);
    CHECK(known.files.by_number(1) == &first);
    CHECK_FALSE(known.files.find({.inode = 2}));
    known.files.drop(&first);
    CHECK_FALSE(known.files.find({.inode = 1}));
    CHECK(known.files.dropped() == 1);
    CHECK(known.add(1, getpid()).number == 2);
    CHECK_FALSE(known.files.by_number(1));
}

TEST_CASE("a file is idle if two checks in a row find no running process that maps it", "[known_files]")
{
    Known known;
    known.add(1, getpid());
    CudaFile& unused = known.add(2, no_process);
    CHECK(known.files.idle().empty());
    CHECK(known.files.idle() == std::vector{&unused});
    unused.users.insert(getpid());
    CHECK(known.files.idle().empty());
    unused.users.clear();
    CHECK(known.files.idle().empty());
    CHECK(known.files.idle() == std::vector{&unused});
}

TEST_CASE("files are limited per process, per user and in total, and each limit is reported once", "[known_files]")
{
    Known known;
    uint64_t inode = 0;
    const auto fill = [&](size_t count, uint64_t owner) { // adds files of several processes
        for (size_t i = 0; i < count; i++)
            known.add(++inode, no_process + static_cast<pid_t>(i / KnownFiles::files_of_process_max) - 100, owner);
    };
    const pid_t first = no_process - 100;
    fill(KnownFiles::files_of_process_max, 1000);
    CHECK_FALSE(known.files.has_room(first, 1000));
    CHECK_FALSE(known.files.has_room(first, 1000));
    CHECK(known.files.has_room(getpid(), 1000));
    fill(KnownFiles::files_of_owner_max - KnownFiles::files_of_process_max, 1000);
    CHECK_FALSE(known.files.has_room(getpid(), 1000));
    CHECK_FALSE(known.files.has_room(getpid(), 1000));
    CHECK(known.files.has_room(getpid(), 2000));
    CHECK_FALSE(known.files.nearly_full());
    fill(KnownFiles::files_max - KnownFiles::files_of_owner_max, 2000);
    CHECK(known.files.nearly_full());
    CHECK_FALSE(known.files.has_room(getpid(), 3000));
    CHECK(known.complaints.all().size() == 3);
}

TEST_CASE("a useless file is examined again after a change", "[known_files]")
{
    Known known;
    known.files.add_useless({{.inode = 1}, 7});
    CHECK(known.files.is_useless({{.inode = 1}, 7}));
    CHECK_FALSE(known.files.is_useless({{.inode = 1}, 8}));
}

TEST_CASE("the number of complaints is limited, and the last one states that there are more", "[complaints]")
{
    Complaints complaints;
    for (size_t i = 0; i < 2 * Complaints::max; i++)
        complaints.add("no");
    CHECK(complaints.all().size() == Complaints::max + 1);
    CHECK(complaints.all().back() != "no");
}
