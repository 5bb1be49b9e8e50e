// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/own_file.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace gpusnoop;
namespace fs = std::filesystem;

namespace {

struct Root {
    Root()
    {
        char name[] = "/tmp/gpusnoop-own-file-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Root() { fs::remove_all(path); }
    Root(const Root&) = delete;
    Root& operator=(const Root&) = delete;

    std::string path;
};

std::string why_not(const OwnFile& file)
{
    try {
        file.read();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

mode_t mode(const std::string& path)
{
    struct stat st {};
    REQUIRE(::stat(path.c_str(), &st) == 0);
    return st.st_mode & 07777;
}

} // namespace

TEST_CASE("a settings file is written atomically and is private", "[util]")
{
    const Root root;
    const OwnFile file(root.path, {".config", "gpusnoop", "x.json"});
    CHECK(file.path() == root.path + "/.config/gpusnoop/x.json");
    CHECK(!file.read());
    CHECK(!fs::exists(root.path + "/.config")); // reading creates no folders
    const mode_t before = ::umask(0);
    file.write("one");
    ::umask(before);
    CHECK(file.read() == "one");
    file.write("");
    CHECK(file.read() == "");
    file.write(std::string(OwnFile::size_max, 'x'));
    CHECK(file.read()->size() == OwnFile::size_max);
    CHECK(mode(file.path()) == 0600);
    CHECK(mode(root.path + "/.config/gpusnoop") == 0700);
    CHECK(std::distance(fs::directory_iterator(root.path + "/.config/gpusnoop"), {}) == 1);
}

TEST_CASE("a file that another user could have created is neither read nor replaced", "[util]")
{
    const Root root;
    const std::string folder = root.path + "/gpusnoop", path = folder + "/x.json", elsewhere = root.path + "/elsewhere";
    const OwnFile file(root.path, {"gpusnoop", "x.json"});
    file.write("{}");
    const auto is = [&](const std::string& why) {
        CHECK(why_not(file) == why);
        fs::remove_all(path);
    };
    SECTION("too large")
    {
        file.write(std::string(OwnFile::size_max + 1, ' ')), is("'" + path + "' is larger than 64K");
    }
    SECTION("a sparse file of a terabyte")
    {
        REQUIRE(::truncate(path.c_str(), off_t{1} << 40) == 0);
        is("'" + path + "' is larger than 64K");
    }
    SECTION("a FIFO")
    {
        fs::remove(path);
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        is("'" + path + "' is not a regular file");
    }
    SECTION("a folder")
    {
        fs::remove(path);
        fs::create_directory(path);
        is("'" + path + "' is not a regular file");
    }
    SECTION("a link")
    {
        fs::rename(path, elsewhere);
        fs::create_symlink(elsewhere, path);
        CHECK(why_not(file) == "'" + path + "' is a symbolic link");
        file.write("new");
        CHECK(!fs::is_symlink(path));
        std::string first;
        std::ifstream(elsewhere) >> first;
        CHECK(first == "{}");
    }
    SECTION("a link to the folder")
    {
        fs::rename(folder, elsewhere);
        fs::create_symlink(elsewhere, folder);
        CHECK(why_not(file) == "'" + folder + "' is not a folder");
        CHECK_THROWS_AS(file.write("new"), Error);
        CHECK(std::distance(fs::directory_iterator(elsewhere), {}) == 1);
    }
    SECTION("the file is writable by others")
    {
        REQUIRE(::chmod(path.c_str(), 0620) == 0);
        is("'" + path + "' can be written by others (chmod go-w)");
    }
    SECTION("its folder is writable by others")
    {
        REQUIRE(::chmod(folder.c_str(), 0707) == 0);
        CHECK(why_not(file) == "'" + folder + "' can be written by others (chmod go-w)");
        CHECK_THROWS_AS(file.write("new"), Error);
    }
    SECTION("the parent folder is writable by others")
    {
        REQUIRE(::chmod(root.path.c_str(), 0770) == 0);
        CHECK(why_not(file) == "'" + root.path + "' can be written by others (chmod go-w)");
        CHECK_THROWS_AS(file.write("new"), Error);
    }
    SECTION("owned by another user")
    {
        if (::geteuid() != 0)
            SKIP("only root can give files away");
        REQUIRE(::chown(path.c_str(), 1, 1) == 0);
        CHECK(why_not(file) == "'" + path + "' belongs to another user");
        REQUIRE(::chown(root.path.c_str(), 1, 1) == 0);
        CHECK(why_not(file) == "'" + root.path + "' belongs to another user");
        CHECK_THROWS_AS(file.write("new"), Error);
    }
    SECTION("the root folder does not exist")
    {
        const OwnFile nowhere(root.path + "/none", {"x.json"});
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
