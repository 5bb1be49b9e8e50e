// SPDX-License-Identifier: Apache-2.0
// Output files: a path cannot be redirected after it is opened, and only the tool's own files are changed.
#include "base/fd.hpp"
#include "base/output_path.hpp"
#include "tests/unit/base/error_of.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/base/small_files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gpusnoop;
namespace fs = std::filesystem;

namespace {

constexpr uid_t other = 65534;
constexpr std::string_view begin = "ours";

OutputPath output(const std::string& path)
{
    return {path, "recording", begin};
}

void need_root()
{
    if (geteuid() != 0)
        SKIP("only root can give files away");
}

} // namespace

TEST_CASE("a link in a path is followed only if no other user can have created it", "[util]")
{
    const Folder folder;
    const std::string to = folder.file("to"), at = folder.file("at"), link = at + "/link", file = link + "/in/x";
    folder.folder("to/in");
    folder.link("at/link", "../to");
    const auto refused = [&] { return error_of([&] { output(file); }); };
    SECTION("the user's own links: relative, absolute and in /proc; and a path without links")
    {
        const Fd in(open((to + "/in").c_str(), O_PATH | O_CLOEXEC));
        output(file).replace("ours", 0600, Durable::no);
        fs::remove(link);
        folder.link("at/link", to);
        CHECK(output(file).open_existing());
        CHECK(output("/proc/self/root" + to + "/in/../in//x").open_existing());
        CHECK(output("/proc/self/fd/" + std::to_string(in.get()) + "/x").open_existing());
        CHECK(contents(to + "/in/x") == "ours");
        return;
    }
    SECTION("a link of another user")
    {
        need_root();
        REQUIRE(lchown(link.c_str(), other, other) == 0);
    }
    SECTION("a link in a folder that another user may write")
    {
        need_root();
        REQUIRE(chown(at.c_str(), other, other) == 0);
    }
    SECTION("a link in a folder with the sticky bit")
    {
        REQUIRE(chmod(at.c_str(), 01777) == 0);
        CHECK(refused().empty()); // in a sticky folder, only the link's owner may rename it
        REQUIRE(chmod(at.c_str(), 0777) == 0);
    }
    CHECK(refused().find("the recording '" + file +
                         "' cannot be written: its folder is behind the symbolic link 'link'") == 0);
    CHECK(refused().find("; use the path that the link points to") != std::string::npos);
    CHECK(fs::is_empty(to + "/in"));
}

TEST_CASE("a path to a missing folder is refused", "[util]")
{
    const Folder folder;
    folder.link("loop", "loop");
    folder.file("file", "");
    for (const char* name : {"loop/x", "none/x", "file/x", "file/../x"})
        CHECK_THROWS_AS(output(folder.file(name)), Error);
    for (const std::string& name : {std::string(), std::string("."), std::string("none/"), std::string(300, 'x')})
        CHECK_THROWS_AS(output(folder.file(name)).open(0600), Error);
}

TEST_CASE("an opened folder cannot be redirected", "[util]")
{
    const Folder folder;
    folder.folder("a");
    folder.folder("b");
    const OutputPath path = output(folder.file("a/x"));
    fs::rename(folder.file("a"), folder.file("c"));
    folder.link("a", "b");
    const Fd file = path.open(0600);
    REQUIRE(write_all(file.get(), "ours 1"));
    path.rename(file, ".1");
    path.replace("ours 2", 0640, Durable::yes);
    CHECK(contents(folder.file("c/x.1")) == "ours 1");
    CHECK(contents(folder.file("c/x")) == "ours 2");
    CHECK((fs::status(folder.file("c/x")).permissions() & fs::perms::all) == fs::perms(0640));
    path.remove();
    CHECK_FALSE(fs::exists(folder.file("c/x")));
    CHECK(fs::is_empty(folder.file("b")));
}

TEST_CASE("a file that is not the tool's own is not written, replaced or removed", "[util]")
{
    const Folder folder;
    const std::string path = folder.file("x");
    const OutputPath out = output(path);
    const auto is_left = [&](const std::string& why) {
        struct stat before {
        }, after{};
        REQUIRE(lstat(path.c_str(), &before) == 0);
        for (const std::string& message :
             {error_of([&] { out.open(0600); }), error_of([&] { out.replace("ours", 0600, Durable::no); })})
            CHECK(message.find(why) != message.npos);
        out.remove();
        REQUIRE(lstat(path.c_str(), &after) == 0);
        CHECK((before.st_ino == after.st_ino && before.st_size == after.st_size));
    };
    SECTION("other contents")
    {
        folder.file("x", "our");
        is_left("'" + path + "' exists and is not a gpusnoop recording; refusing to overwrite it; name another file");
    }
    SECTION("owned by another user")
    {
        need_root();
        folder.file("x", "ours");
        REQUIRE(chown(path.c_str(), other, other) == 0);
        is_left("exists and belongs to another user");
        REQUIRE(chown(folder.file("").c_str(), other, other) == 0); // the folder's owner could replace it anyway
        CHECK(out.open_existing());
    }
    SECTION("a link")
    {
        folder.link("x", folder.file("to", "ours"));
        is_left("symbolic link");
        CHECK(contents(folder.file("to")) == "ours");
    }
    SECTION("a FIFO")
    {
        folder.fifo("x");
        is_left("not a regular file");
    }
}

TEST_CASE("only the written file is renamed, and it replaces only the tool's own files", "[util]")
{
    const Folder folder;
    const OutputPath path = output(folder.file("x"));
    const Fd file = path.open(0600);
    folder.file("x.1", "other");
    CHECK(error_of([&] { path.rename(file, ".1"); }).find("x.1' exists and is not") != std::string::npos);
    folder.file("x.1", "ours");
    fs::rename(folder.file("x"), folder.file("moved"));
    folder.file("x", "ours, too");
    CHECK(error_of([&] { path.rename(file, ".1"); }).find("another file has replaced it") != std::string::npos);
    CHECK(contents(folder.file("x.1")) == "ours");
}

TEST_CASE("a file that cannot be replaced stays, and no temporary file is left", "[util]")
{
    const Folder folder;
    const OutputPath path = output(folder.file("x"));
    folder.file("x.new", "precious");
    path.replace("ours", 0600, Durable::no);
    {
        const SmallFiles limit(3);
        CHECK(error_of([&] { path.replace("ours, longer", 0600, Durable::yes); }).find("ulimit -f") !=
              std::string::npos);
    }
    CHECK(contents(folder.file("x")) == "ours");
    CHECK(contents(folder.file("x.new")) == "precious");
    CHECK(std::distance(fs::directory_iterator(folder.file("")), {}) == 2);
}
