// SPDX-License-Identifier: Apache-2.0
// Error messages of scripts/driver-tables.
#include "tests/unit/base/folder.hpp"

#include <algorithm>
#include <sys/wait.h>

using gpusnoop::contents;
using gpusnoop::Folder;
namespace fs = std::filesystem;

namespace {

fs::path root()
{
    return fs::absolute(fs::path(__FILE__)).parent_path().parent_path().parent_path().parent_path();
}

// A copy of data/, which the tests damage.
class Tables : Folder {
public:
    Tables()
    {
        if (!fs::exists(root() / "scripts/driver-tables"))
            SKIP("there is no scripts/driver-tables below " << root());
        fs::copy(root() / "data", path());
    }

    void append(const std::string& table, const std::string& row) const
    {
        file(table, contents(file(table)) + row + '\n');
    }
    void replace(const std::string& table, const std::string& from, const std::string& to) const
    {
        auto text = contents(file(table));
        REQUIRE(text.find(from) != text.npos);
        file(table, text.replace(text.find(from), from.size(), to));
    }
    void remove(const std::string& table) const { fs::remove(file(table)); }

    // Returns "FILE:LINE" of the file's last line.
    std::string place(const std::string& table) const
    {
        const auto text = contents(file(table));
        return table + ":" + std::to_string(std::ranges::count(text, '\n')) + ": ";
    }

    // Returns the error message without the folder, or "" if the tables are valid.
    std::string refusal() const
    {
        const Folder output;
        const std::string errors = output.file("errors");
        // A variable, so that the shell does not split a path with spaces.
        REQUIRE(setenv("DRIVER_TABLES", (root() / "scripts/driver-tables").c_str(), 1) == 0);
        const int code = std::system(("\"$DRIVER_TABLES\" " + path() + " >/dev/null 2>" + errors).c_str());
        const auto text = contents(errors), start = "driver-tables: " + path() + "/";
        CHECK((WIFEXITED(code) && WEXITSTATUS(code) == (text.empty() ? 0 : 1)));
        return text.starts_with(start) ? text.substr(start.size()) : text;
    }
};

} // namespace

TEST_CASE("an error in a table is reported with its file and line")
{
    CHECK(Tables().refusal() == "");
    struct Bad {
        const char *file, *row, *message;
    };
    const Bad rows[] = {
        {"nvidia-escapes.tsv", "0x2a\tNV_ESC_RM_CONTROL\t32\t28\t8\t16\t590.44.01\t-",
         "the same request as line 5, for the same driver versions"},
        {"nvidia-escapes.tsv", "0x2a\tNV_ESC_OTHER\t36\t28\t8\t16\t-\t-", "NV_ESC_OTHER has the number of"},
        {"nvidia-escapes.tsv", "0x2a\tNV_ESC_RM_CONTROL\t-\t-\t-\t-\t-\t-", "the same command as line 5"},
        {"nvidia-escapes.tsv", "0xe0\tNV_ESC_NEW\t32\t29\t-\t-\t-\t-", "status 29 is beyond the struct"},
        {"nvidia-escapes.tsv", "0xe0\tNV_ESC_NEW\t32\t-\t-\t25\t-\t-", "parameters 25 is beyond the struct"},
        {"nvidia-escapes.tsv", "0xe0\tNV_ESC_NEW\t-\t8\t-\t-\t-\t-", "status needs the size of the struct"},
        {"nvidia-escapes.tsv", "0xe0\tNV_ESC_NEW\t16384\t8\t-\t-\t-\t-", "size 16384 is greater than 0x3fff"},
        {"nvidia-escapes.tsv", "0x1e0\tNV_ESC_NEW\t32\t8\t-\t-\t-\t-", "number 0x1e0 is greater than 0xff"},
        {"nvidia-escapes.tsv", "e0\tNV_ESC_NEW\t32\t8\t-\t-\t-\t-", "number 'e0' is not a number"},
        {"nvidia-escapes.tsv", "0xe0\tNV_ESC_NEW\t32\t8\t-\t-\t590\t-", "since '590' is not a driver version"},
        {"nvidia-escapes.tsv", "0xe0\tNV_ESC_NEW\t32\t8\t-\t-\t590.1\t580.1", "since is not before until"},
        {"nvidia-escapes.tsv", "0xe0\tNV_ESC_NEW\t32\t8", "4 columns, not 8"},
        {"nvidia-escapes.tsv", "", "1 columns, not 8"},
        {"nvidia-uvm.tsv", "0x22\tUVM_FREE\t32\t24\t580.1\t590.1", "the same request as line"},
        {"nvidia-classes.tsv", "0xffff\tnew\tmemory", "'new' is not a name"},
        {"nvidia-classes.tsv", "0xffff\tNEW\tmemories", "kind 'memories' is not one of client, device"},
        {"nvidia-classes.tsv", "0x0040\tNEW\tmemory", "the same number as line"},
        {"nvidia-controls.tsv", "0x123456789\tNEW", "number 0x123456789 is greater than 0xffffffff"},
        {"nvidia-xids.tsv", "999\tNEW\tsays \"this\"\t-", "is not plain text"},
        {"amd.tsv", "kfd\t0xe0\tAMDKFD_IOC_NEW\t-\t8", "direction '-' is not one of w, r, rw"},
        {"amd.tsv", "intel\t0xe0\tNEW\tw\t8", "driver 'intel' is not one of"},
        {"sizes.tsv", "uvm\tUVM_NEW\t-\t8\tstruct\tsize\tmemory\t-\t-", "no command UVM_NEW with a known struct"},
        {"sizes.tsv", "uvm\tUVM_FREE\t-\t8\tstruct\tsize\tmemory\t-\t-", "the same space, command and subject as line"},
        {"sizes.tsv", "uvm\tUVM_INITIALIZE\t-\t9\tstruct\tsize\tmemory\t-\t-", "offset 9 is beyond the struct"},
        {"sizes.tsv", "nvidia\tNV_ESC_RM_ALLOC\t-\t8\tparameters\tsize\tmemory\t-\t-", "has a subject"},
        {"sizes.tsv", "nvidia\tNV_ESC_RM_FREE\tNV01_ROOT\t8\tstruct\tsize\tmemory\t-\t-", "has no subject"},
        {"sizes.tsv", "nvidia\tNV_ESC_RM_FREE\t-\t8\tparameters\tsize\tmemory\t-\t-", "has no parameters"},
        {"sizes.tsv", "nvidia\tNV_ESC_RM_ALLOC\tNEW\t8\tparameters\tsize\tmemory\t-\t-", "class or heap function NEW"},
    };
    for (const Bad& bad : rows) {
        CAPTURE(bad.row);
        Tables tables;
        tables.append(bad.file, bad.row);
        auto error = tables.refusal();
        CAPTURE(error);
        CHECK(error.starts_with(tables.place(bad.file)));
        CHECK(error.find(bad.message) != error.npos);
    }
}

TEST_CASE("a missing column or table is an error")
{
    Tables tables;
    tables.replace("nvidia-xids.tsv", "number\tname\tmeaning", "number\tname\twords");
    CHECK(tables.refusal() == "nvidia-xids.tsv:1: column meaning is missing\n");
    tables.remove("nvidia-xids.tsv");
    CHECK(tables.refusal().starts_with("nvidia-xids.tsv: "));
}
