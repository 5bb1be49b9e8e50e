// SPDX-License-Identifier: Apache-2.0
#include "who/host_files.hpp"

#include "tests/unit/who/container_host.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <sys/stat.h>

using gpusnoop::HostFiles;
using gpusnoop::container_host::Host;

TEST_CASE("only regular files are read, and hidden files are not listed", "[containers]")
{
    const Host host;
    host.write("folder/file", "text");
    host.write("folder/.hidden", "text");
    host.link("folder/link", "file");
    REQUIRE(mkfifo(host.path("folder/fifo").c_str(), 0600) == 0);
    const HostFiles files(host.path("").string());
    CHECK(files.read("folder/file") == "text");
    CHECK(files.read("/folder/file") == "text");
    CHECK(files.read("../folder/../../folder/file") == "text"); // ".." cannot leave the root
    for (const char* name : {"folder", "folder/link", "folder/fifo", "folder/none", "", "folder/file/below"})
        CHECK(!files.read(name));
    auto names = files.list("folder");
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"fifo", "file", "link"});
    CHECK(files.list("folder/file").empty());
    CHECK(files.untrusted("folder").read("file") == "text");
    CHECK(!files.untrusted("folder").read("../folder/file"));
    CHECK(!files.untrusted("none").read("file"));
}
