// SPDX-License-Identifier: Apache-2.0
#include "names/registration_scan.hpp"
#include "names/scan_cache.hpp"
#include "tests/unit/code/elf_fixtures.hpp"

#include <fmt/format.h>
#include <set>
#include <thread>

using namespace gpusnoop;
namespace fs = std::filesystem;

namespace {

// Compiles tests/fuzz/seed.cpp with these flags.
std::string compiled(const Folder& folder, const std::string& flags)
{
    const std::string file = folder.file("registering");
    REQUIRE(std::system(("g++ " + flags + " tests/fuzz/seed.cpp -o " + file + " -nostdlib -s").c_str()) == 0); // NOLINT
    return file;
}

Fd opened(const std::string& path)
{
    return Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

Registrations few()
{
    Registrations r;
    r.kernels = {{0x1000, 0x5000, {0x2000, 46}}, {0x1010, 0x5008, {0x202e, 46}}};
    r.handles = {{0x9000, 0x1000, {0x3000, 12}}};
    r.sites = 3;
    r.read = 2;
    return r;
}

const std::string id = "0123456789abcdef0123456789abcdef01234567";

} // namespace

TEST_CASE("registrations are found in code", "[registrations]")
{
    for (const char* flags :
         {"-O2 -fPIC -shared",
          "-O2 -DRUNTIME -fno-pie -no-pie -static -e launch_all", // a static runtime without symbols
          "-O0 -DRUNTIME -fPIE -pie -e launch_all", "-Os -DRUNTIME -fPIC -shared"}) {
        CAPTURE(flags);
        const Folder folder;
        const Elf elf(opened(compiled(folder, flags)));
        const Registrations found = scan_registrations(elf);
        CHECK(found.sites == 4);
        CHECK(found.read == 4);
        const ElfImage image(elf);
        std::set<std::string> names;
        for (const Registration& r : found.kernels) {
            names.insert(registered_name(image, r));
            for (const Registration& other :
                 {Registration{r.stub + 1, r.name, r.site}, Registration{r.stub, r.name + 1, r.site},
                  Registration{r.stub, r.name, {UINT64_MAX, r.site.window}}})
                CHECK(registered_name(image, other).empty());
        }
        CHECK(names == std::set<std::string>{"_Z5firstPf", "_ZN2at6secondIfEEvT_", "third", "_Z8exportedv"});
        CHECK(found.handles.size() == 3);
        for (const HandleVariable& h : found.handles) {
            CHECK(found.kernel(h.stub) != nullptr);
            CHECK(keeps_handle(image, h));
            CHECK_FALSE(keeps_handle(image, {h.variable + 8, h.stub, h.site}));
        }
    }
}

TEST_CASE("a helper process scans a file", "[registrations]")
{
    const Folder folder;
    const auto answer_of = [](const Fd& file) {
        Scanner worker;
        worker.begin(getpid(), file);
        while (!worker.ended())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return worker.answer();
    };
    const auto answer = answer_of(opened(compiled(folder, "-O2 -fPIC -shared")));
    REQUIRE(answer);
    CHECK(answer->kernels.size() == 4);
    CHECK_FALSE(answer_of(opened("/etc/passwd")));
    CHECK_FALSE(answer_of(Fd()));
}

TEST_CASE("registrations survive serialization, and invalid bytes are rejected", "[registrations]")
{
    const std::string bytes = encode(few());
    const auto back = decode_registrations(bytes);
    REQUIRE(back);
    CHECK(encode(*back) == bytes);
    CHECK(back->kernels[1].site.address == 0x202e);
    CHECK(back->kernels[1].site.window == 46);
    CHECK(back->handles[0].variable == 0x9000);
    CHECK(back->sites == 3);
    for (size_t size = 0; size < bytes.size(); size++)
        CHECK_FALSE(decode_registrations(std::span(bytes).first(size)));
    CHECK_FALSE(decode_registrations(bytes + "x"));
    for (size_t at = 24; at < 40; at++) { // the number of kernels, and the stub of the first one
        std::string spoilt = bytes;
        spoilt[at] = '\x7f';
        CHECK_FALSE(decode_registrations(spoilt));
    }
    Registrations unsorted = few();
    std::swap(unsorted.kernels[0], unsorted.kernels[1]);
    CHECK_FALSE(decode_registrations(encode(unsorted)));
}

TEST_CASE("scan results are cached by build-id", "[registrations]")
{
    const Folder folder;
    const fs::path path = folder.file("cache");
    const ScanCache cache(path);
    CHECK_FALSE(cache.find(id, 100));
    cache.keep(id, 100, few());
    const auto found = cache.find(id, 100);
    REQUIRE(found);
    CHECK(encode(*found) == encode(few()));
    CHECK_FALSE(cache.find(id, 101));
    CHECK_FALSE(cache.find("fedcba9876543210", 100));
    CHECK((fs::status(path).permissions() & fs::perms::all) == fs::perms::owner_all);

    SECTION("nothing is cached without a valid build-id")
    {
        cache.keep("", 100, few());
        cache.keep("../../../etc/passwd", 100, few());
        CHECK(std::distance(fs::directory_iterator(path), {}) == 1);
    }
    SECTION("files that others may have written are ignored")
    {
        fs::permissions(*fs::directory_iterator(path), fs::perms::all);
        CHECK_FALSE(cache.find(id, 100));
        fs::permissions(path, fs::perms::all);
        const ScanCache open_to_all(path);
        open_to_all.keep("fedcba9876543210", 100, few());
        CHECK_FALSE(open_to_all.find("fedcba9876543210", 100));
        CHECK_FALSE(ScanCache(folder.link("link", folder.path())).find(id, 100));
    }
    SECTION("damaged files are ignored")
    {
        for (const std::string& bytes : {std::string(), std::string(4096, '\xff'), encode(few()).substr(8)}) {
            std::ofstream(fs::directory_iterator(path)->path()) << bytes;
            CHECK_FALSE(cache.find(id, 100));
        }
    }
    SECTION("the size of the cache is limited")
    {
        Registrations many;
        for (uint64_t i = 0; i < registrations_max; i++)
            many.kernels.push_back({i, i, {i, 1}});
        const auto size = [&path] {
            uint64_t bytes = 0;
            for (const auto& entry : fs::directory_iterator(path))
                bytes += entry.file_size();
            return bytes;
        };
        for (uint64_t i = 0; i < 2 * ScanCache::size_max / encode(many).size(); i++) {
            cache.keep(id, 1000 + i, many);
            CHECK(size() <= ScanCache::size_max);
            CHECK(cache.find(id, 1000 + i));
        }
    }
    SECTION("the number of files is limited, and the oldest are removed")
    {
        fs::last_write_time(*fs::directory_iterator(path), fs::file_time_type::clock::now() - std::chrono::hours(1));
        for (size_t i = 1; i < ScanCache::files_max; i++)
            std::ofstream(path / fmt::format("{:016x}-1", i)) << i;
        cache.keep(id, 200, few());
        const auto files = std::distance(fs::directory_iterator(path), {});
        CHECK(static_cast<size_t>(files) == ScanCache::files_max);
        CHECK_FALSE(cache.find(id, 100));
        CHECK(cache.find(id, 200));
    }
    SECTION("without a folder, nothing is cached")
    {
        const ScanCache none("");
        none.keep(id, 100, few());
        CHECK_FALSE(none.find(id, 100));
    }
}
