// SPDX-License-Identifier: Apache-2.0
#include "who/host_files.hpp"

#include "tests/unit/base/folder.hpp"

#include <algorithm>

using gpusnoop::Folder;
using gpusnoop::HostFiles;

TEST_CASE("only regular files are read, and hidden files are not listed", "[containers]")
{
    const Folder host;
    host.file("folder/file", "text");
    host.file("folder/.hidden", "text");
    host.link("folder/link", "file");
    host.fifo("folder/fifo");
    const HostFiles files(host.path());
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
