// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include "tests/unit/base/error_of.hpp"
#include "tests/unit/base/folder.hpp"

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

using namespace gpusnoop;
namespace fs = std::filesystem;

namespace {

mode_t mode(const std::string& path)
{
    struct stat st {};
    REQUIRE(::stat(path.c_str(), &st) == 0);
    return st.st_mode & 07777;
}

} // namespace

TEST_CASE("a settings file is written atomically and is private", "[util]")
{
    const Folder root;
    const OwnFile file(root.path(), {".config", "gpusnoop", "x.json"});
    CHECK(file.path() == root.path() + "/.config/gpusnoop/x.json");
    CHECK(!file.read());
    CHECK(!fs::exists(root.path() + "/.config")); // reading creates no folders
    const mode_t before = ::umask(0);
    file.write("one");
    ::umask(before);
    CHECK(file.read() == "one");
    file.write("");
    CHECK(file.read() == "");
    file.write(std::string(OwnFile::size_max, 'x'));
    CHECK(file.read()->size() == OwnFile::size_max);
    CHECK(mode(file.path()) == 0600);
    CHECK(mode(root.path() + "/.config/gpusnoop") == 0700);
    CHECK(std::distance(fs::directory_iterator(root.path() + "/.config/gpusnoop"), {}) == 1);
}

TEST_CASE("a file that another user could have created is neither read nor replaced", "[util]")
{
    const Folder root;
    const std::string folder = root.file("gpusnoop"), path = folder + "/x.json", elsewhere = root.file("elsewhere");
    const OwnFile file(root.path(), {"gpusnoop", "x.json"});
    const auto why_not_read = [&] { return error_of([&] { file.read(); }); };
    file.write("{}");

    SECTION("an unsuitable file")
    {
        const auto is = [&](const std::string& why) {
            CHECK(why_not_read() == "'" + path + "' " + why);
            fs::remove_all(path);
        };
        file.write(std::string(OwnFile::size_max + 1, ' '));
        is("is larger than 64K");
        file.write("{}");
        REQUIRE(::truncate(path.c_str(), off_t{1} << 40) == 0); // sparse
        is("is larger than 64K");
        root.fifo("gpusnoop/x.json");
        is("is not a regular file");
        root.folder("gpusnoop/x.json");
        is("is not a regular file");
        file.write("{}");
        REQUIRE(::chmod(path.c_str(), 0620) == 0);
        is("can be written by others (chmod go-w)");
    }
    SECTION("a link")
    {
        fs::rename(path, elsewhere);
        root.link("gpusnoop/x.json", elsewhere);
        CHECK(why_not_read() == "'" + path + "' is a symbolic link");
        file.write("new");
        CHECK(!fs::is_symlink(path));
        CHECK(contents(elsewhere) == "{}");
    }
    SECTION("a link to the folder")
    {
        fs::rename(folder, elsewhere);
        root.link("gpusnoop", elsewhere);
        CHECK(why_not_read() == "'" + folder + "' is not a folder");
        CHECK_THROWS_AS(file.write("new"), Error);
        CHECK(std::distance(fs::directory_iterator(elsewhere), {}) == 1);
    }
    SECTION("a folder that is writable by others")
    {
        for (const auto& [name, mode] : {std::pair{folder, 0707}, std::pair{root.path(), 0770}}) {
            REQUIRE(::chmod(name.c_str(), static_cast<mode_t>(mode)) == 0);
            CHECK(why_not_read() == "'" + name + "' can be written by others (chmod go-w)");
            CHECK_THROWS_AS(file.write("new"), Error);
            REQUIRE(::chmod(name.c_str(), 0700) == 0);
        }
    }
    SECTION("owned by another user")
    {
        if (::geteuid() != 0)
            SKIP("only root can give files away");
        for (const std::string& name : {path, root.path()}) {
            REQUIRE(::chown(name.c_str(), 1, 1) == 0);
            CHECK(why_not_read() == "'" + name + "' belongs to another user");
        }
        CHECK_THROWS_AS(file.write("new"), Error);
    }
    SECTION("the root folder does not exist")
    {
        const OwnFile nowhere(root.file("none"), {"x.json"});
        CHECK(!nowhere.read());
        CHECK_THROWS_AS(nowhere.write("new"), Error);
    }
}

TEST_CASE("the settings folder comes from the environment", "[util]")
{
    const auto path = [](const char* config, const char* home) {
        config ? ::setenv("XDG_CONFIG_HOME", config, 1) : ::unsetenv("XDG_CONFIG_HOME");
        home ? ::setenv("HOME", home, 1) : ::unsetenv("HOME");
        const auto file = OwnFile::of_settings("x.json");
        return file ? file->path() : "";
    };
    const char* const home = std::getenv("HOME");
    const std::string before = home ? home : "/";
    CHECK(path("/c", "/h") == "/c/gpusnoop/x.json");
    CHECK(path(nullptr, "/h") == "/h/.config/gpusnoop/x.json");
    CHECK(path("", "/h") == "/h/.config/gpusnoop/x.json");
    CHECK(path("relative", "/h") == "/h/.config/gpusnoop/x.json");
    CHECK(path(nullptr, "relative").empty());
    CHECK(path(nullptr, nullptr).empty());
    ::setenv("HOME", before.c_str(), 1);
}
