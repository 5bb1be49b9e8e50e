// SPDX-License-Identifier: Apache-2.0
// Kinds of memory, which the kernel side derives from addresses: which calls make memory known, which ones forget it,
// and the directions of copies that follow from it.
#include "base/fd.hpp"
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <thread>

using namespace gpusnoop;

namespace {

constexpr uint64_t failed = 2;

std::string_view kind_between(std::string_view from, std::string_view to)
{
    const auto side = [](std::string_view memory) {
        return memory == "host" || memory == "pinned" || memory == "pageable" ? 'H'
               : memory == "device" || memory == "array"                      ? 'D'
                                                                              : '?';
    };
    if (side(from) == '?' || side(to) == '?')
        return "unknown";
    return side(from) == 'H' ? side(to) == 'H' ? "H2H" : "H2D" : side(to) == 'H' ? "D2H" : "D2D";
}

// Copies, and the lines that they must have.
class Copies {
public:
    explicit Copies(FakeRun& run) : run_(run) {}

    // Expects one line of the last call. why: names the check if it fails.
    void expect(std::string_view from, std::string_view to, std::string_view why, std::string_view kind = "")
    {
        expected_.push_back(fmt::format("{} to {}, {}", from, to, kind.empty() ? kind_between(from, to) : kind));
        reasons_.emplace_back(why);
    }
    // Expects that this address has this kind of memory.
    void expect_at(uint64_t address, std::string_view memory, std::string_view why)
    {
        run_.call("cuMemcpy", {{ARG_DESTINATION, address}, {ARG_SOURCE, heap()}, {ARG_BYTES, 1}});
        expect("host", memory, why);
    }
    void check()
    {
        const std::vector<json> lines = run_.report();
        REQUIRE(lines.size() == expected_.size());
        for (size_t i = 0; i < lines.size(); i++) {
            INFO(reasons_[i]);
            CHECK(fmt::format("{} to {}, {}", lines[i]["source"].get<std::string>(),
                              lines[i]["destination"].get<std::string>(),
                              lines[i]["kind"].get<std::string>()) == expected_[i]);
        }
        expected_.clear();
        reasons_.clear();
        CHECK(run_.losses().empty());
    }
    uint64_t heap() const { return reinterpret_cast<uint64_t>(heap_.get()); }

private:
    FakeRun& run_;
    std::vector<std::string> expected_, reasons_;
    std::unique_ptr<std::byte[]> heap_ = std::make_unique<std::byte[]>(64);
};

// Returns an address of nothing. It is odd, so that ranges begin and end within pages.
uint64_t new_address()
{
    static uint64_t next = 0x7e00'0000'0001;
    return next += 0x10'0000'00ff;
}

// Makes an allocating call return this address. Returns the number of bytes that are then known.
uint64_t prepare(FakeRun& run, CompiledCall& call, uint64_t address)
{
    const auto store = [&](argument result, uint64_t value) {
        const uint64_t at = call.passed[0][result], memory = reinterpret_cast<uint64_t>(call.call->memory);
        if (at >= memory && at < memory + sizeof(call.call->memory)) // in a structure
            *reinterpret_cast<uint64_t*>(at) = value;
        else
            call.pass(result, reinterpret_cast<uint64_t>(run.memory({value})));
    };
    if (call.passes(ARG_OUT))
        store(ARG_OUT, address);
    else
        call.pass(ARG_ADDRESS, address);
    if (call.passes(ARG_HANDLE))
        return 0;
    uint64_t bytes = 1; // memory of unknown size
    for (const auto& [factor, value] : {std::pair(ARG_BYTES, 1537), {ARG_HEIGHT, 7}, {ARG_DEPTH, 3}})
        if (call.passes(factor)) {
            call.pass(factor, value);
            bytes *= factor == ARG_BYTES && call.passes(ARG_PITCH) ? 2048 : value;
        }
    if (call.passes(ARG_PITCH))
        store(ARG_PITCH, 2048);
    return bytes;
}

std::string_view memory_by_name(std::string_view function)
{
    const auto has = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
    return has("Managed") ? "managed" : has("Host") ? "pinned" : "device";
}

void call(FakeRun& run, const CompiledCall& made, uint64_t result = 0)
{
    run.call(made.probe, *made.call, result);
}

void allocate(FakeRun& run, std::string_view function, uint64_t address, uint64_t bytes, uint64_t result = 0)
{
    run.call(function, {{ARG_OUT, reinterpret_cast<uint64_t>(run.memory({address}))}, {ARG_BYTES, bytes}}, result);
}

size_t entries(FakeRun& run, const char* map)
{
    const int fd = bpf_object__find_map_fd_by_name(run.tool().opened().object, map);
    size_t count = 0;
    std::byte key[64], next[64];
    for (const std::byte* last = nullptr; bpf_map_get_next_key(fd, last, next) == 0; count++, last = key)
        std::ranges::copy(next, key);
    return count;
}

// A page that is mapped as the test asks.
class Page {
public:
    Page(int protection, const char* file)
        : file_(file ? Fd(::open(file, O_RDONLY | O_CLOEXEC)) : Fd()),
          at_(::mmap(nullptr, 4096, protection, MAP_PRIVATE | (file ? 0 : MAP_ANONYMOUS), file_.get(), 0))
    {
        REQUIRE(at_ != MAP_FAILED);
    }
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;
    ~Page() { ::munmap(at_, 4096); }

    uint64_t address() const { return reinterpret_cast<uint64_t>(at_); }

private:
    Fd file_;
    void* at_;
};

} // namespace

TEST_CASE("kinds of memory follow from calls that allocate, register, map and free", "[bpf][cudamemcpy]")
{
    need_bpf();
    FakeRun run("cudamemcpy -e --api both");
    Copies copies(run);

    // every function that allocates or registers, and every function that frees
    std::vector<CompiledCall> makers =
        compiled_calls(run, {calls_of({KIND_ALLOC, KIND_REGISTER_HOST}).kinds, changes_memory});
    std::vector<CompiledCall> frees = compiled_calls(run, {calls_of({KIND_FREE}).kinds, changes_memory});
    REQUIRE((makers.size() > 20 && frees.size() > 10));
    for (size_t i = 0; i < std::max(makers.size(), frees.size()); i++) {
        CompiledCall &maker = makers[i % makers.size()], &free = frees[i % frees.size()];
        const std::string_view function = maker.probe.symbol, memory = memory_by_name(function);
        const uint64_t address = new_address(), nothing = new_address(), bytes = prepare(run, maker, address);
        call(run, maker);
        copies.expect_at(address, memory, function);
        copies.expect_at(address + bytes / 2, memory, function);
        copies.expect_at(address + bytes - 1, memory, function);
        copies.expect_at(address + bytes, "unknown", function);
        copies.expect_at(address - 1, "unknown", function);
        free.pass(ARG_ADDRESS, address);
        call(run, free, failed);
        copies.expect_at(address + bytes - 1, memory, fmt::format("failed {}", free.probe.symbol));
        call(run, free);
        copies.expect_at(address, "unknown", free.probe.symbol);
        copies.expect_at(address + bytes - 1, "unknown", free.probe.symbol);
        prepare(run, maker, nothing);
        call(run, maker, failed);
        copies.expect_at(nothing, "unknown", fmt::format("failed {}", function));
    }
    copies.check();

    // physical memory
    std::vector<CompiledCall> maps = compiled_calls(run, calls_of({KIND_MAP})),
                              unmaps = compiled_calls(run, calls_of({KIND_UNMAP})),
                              releases = compiled_calls(run, calls_of({KIND_PHYSICAL_FREE}));
    size_t number = 0;
    for (CompiledCall& create : compiled_calls(run, calls_of({KIND_PHYSICAL_NEW})))
        for (uint64_t location = 0; location < (create.passes(ARG_LOCATION) ? 6 : 1); location++) {
            const std::string why = fmt::format("{}, location {}", create.probe.symbol, location);
            const std::string_view memory = location == 1                    ? "device"
                                            : location >= 2 && location <= 4 ? "pinned"
                                                                             : "unknown";
            const uint64_t handle = 1000 + number++, address = new_address(), bytes = 1 << 21;
            CompiledCall &map = maps[number % maps.size()], &unmap = unmaps[number % unmaps.size()],
                         &release = releases[number % releases.size()];
            if (create.passes(ARG_LOCATION))
                create.pass(ARG_LOCATION, location);
            create.pass(ARG_OUT, reinterpret_cast<uint64_t>(run.memory({handle})));
            const auto map_at = [&](uint64_t at, uint64_t result = 0) {
                map.pass(ARG_ADDRESS, at);
                map.pass(ARG_BYTES, bytes);
                map.pass(ARG_HANDLE, handle);
                call(run, map, result);
            };
            call(run, create, failed);
            map_at(address);
            copies.expect_at(address, "unknown", "failed " + why);
            call(run, create);
            map_at(address, failed);
            copies.expect_at(address, "unknown", "failed map, " + why);
            for (unsigned i = 0; i < 3; i++)
                map_at(address + i * bytes);
            copies.expect_at(address + 3 * bytes - 1, memory, why);
            copies.expect_at(address + 3 * bytes, "unknown", why);
            release.pass(ARG_HANDLE, handle);
            call(run, release);
            copies.expect_at(address + bytes, memory, "released, " + why);
            unmap.pass(ARG_ADDRESS, address + bytes);
            unmap.pass(ARG_BYTES, 2 * bytes);
            call(run, unmap); // two mappings
            copies.expect_at(address + bytes - 1, memory, why);
            copies.expect_at(address + bytes, "unknown", why);
            copies.expect_at(address + 2 * bytes, "unknown", why);
            map_at(address + bytes);
            copies.expect_at(address + bytes, "unknown", "after the release, " + why);
        }
    copies.check();

    // directions between all kinds of memory, by every way to state them
    struct Place {
        std::string_view memory;
        uint64_t address;
    };
    const Place places[] = {{"host", copies.heap()},
                            {"pinned", new_address()},
                            {"device", new_address()},
                            {"managed", new_address()},
                            {"unknown", new_address()}};
    allocate(run, "cuMemHostAlloc", places[1].address, 100);
    allocate(run, "cuMemAlloc_v2", places[2].address, 100);
    allocate(run, "cuMemAllocManaged", places[3].address, 100);
    for (const auto& [from, source] : places)
        for (const auto& [to, destination] : places) {
            const Arguments ends = {{ARG_DESTINATION, destination}, {ARG_SOURCE, source}, {ARG_BYTES, 1}};
            const auto with = [&](const Arguments& more) {
                Arguments all = more;
                all.insert(ends.begin(), ends.end());
                return all;
            };
            const auto expect_by_address = [&](std::string_view function, const Arguments& arguments) {
                run.call(function, arguments);
                copies.expect(from, to, function);
            };
            expect_by_address("cuMemcpy", ends);
            expect_by_address("cuMemcpyAsync_ptsz", ends);
            expect_by_address("cudaMemcpy", with({{ARG_DIRECTION, 4}}));
            expect_by_address("hipMemcpyWithStream", with({{ARG_DIRECTION, 4}}));
            expect_by_address("cuMemcpy3DAsync_v2", with({{ARG_SOURCE_TYPE, 4}, {ARG_DESTINATION_TYPE, 4}}));
            expect_by_address("cuMemcpy3DBatchAsync_v2",
                              with({{ARG_COUNT, 1}, {ARG_SOURCE_TYPE, 1}, {ARG_DESTINATION_TYPE, 1}}));
            run.call("cuMemcpyBatchAsync",
                     {{ARG_DESTINATION, reinterpret_cast<uint64_t>(run.memory({places[2].address, destination}))},
                      {ARG_SOURCE, reinterpret_cast<uint64_t>(run.memory({places[0].address, source}))},
                      {ARG_BYTES, reinterpret_cast<uint64_t>(run.memory({1, 1}))},
                      {ARG_COUNT, 2}});
            copies.expect("host", "device", "first element");
            copies.expect(from, to, "second element");
            // Functions, and types other than 4, state the direction, whatever the address. The kind of memory that
            // was allocated there is more exact.
            const std::string_view device = to == "unknown" || to == "host" ? "device" : to;
            const std::string_view host = from == "unknown" ? "host" : from;
            run.call("cuMemcpyHtoD_v2", ends);
            copies.expect(host, device, "cuMemcpyHtoD_v2", "H2D");
            run.call("cuMemcpy2D_v2", {{ARG_DESTINATION, destination},
                                       {ARG_SOURCE_HOST, source},
                                       {ARG_SOURCE, 1},
                                       {ARG_SOURCE_TYPE, 1},
                                       {ARG_DESTINATION_TYPE, 2}});
            copies.expect(host, device, "cuMemcpy2D_v2", kind_between(host, device));
            run.call(
                "cuMemcpy2D_v2",
                {{ARG_DESTINATION, 0xa77a0}, {ARG_SOURCE, source}, {ARG_SOURCE_TYPE, 4}, {ARG_DESTINATION_TYPE, 3}});
            copies.expect(from, "array", "an array");
        }
    copies.check();

    // host memory that no call has allocated
    const Page file(PROT_READ, "/proc/self/exe"), reserved(PROT_NONE, nullptr), of_driver(PROT_READ, "/dev/zero"),
        anonymous(PROT_READ, nullptr);
    copies.expect_at(file.address(), "host", "a file");
    copies.expect_at(reserved.address(), "unknown", "reserved addresses");
    copies.expect_at(of_driver.address(), "unknown", "a mapping by a driver");
    copies.expect_at(anonymous.address(), "host", "anonymous memory");
    // an address that is used again, and memory that another thread frees
    allocate(run, "cuMemHostAlloc", anonymous.address(), 4096);
    copies.expect_at(anonymous.address() + 4095, "pinned", "pinned memory");
    std::thread([&] { run.call("cuMemFreeHost", {{ARG_ADDRESS, anonymous.address()}}); }).join();
    copies.expect_at(anonymous.address() + 4095, "host", "freed by another thread");
    allocate(run, "cuMemAllocManaged", anonymous.address(), 4096);
    copies.expect_at(anonymous.address(), "managed", "managed memory");
    copies.check();

    // adjacent ranges of any size, of which every second is freed
    const auto bytes_of = [](uint64_t i) { return 1 + i * 7919 % 1'000'003; };
    constexpr uint64_t ranges = 400;
    const uint64_t first = new_address();
    for (const bool frees_some : {false, true}) {
        uint64_t at = first;
        for (uint64_t i = 0; i < ranges; at += bytes_of(i++))
            if (!frees_some)
                allocate(run, i % 4 ? "cuMemAlloc_v2" : "cuMemAllocManaged", at, bytes_of(i));
            else if (i % 2)
                run.call("cuMemFree_v2", {{ARG_ADDRESS, at}});
    }
    for (uint64_t i = 0, at = first; i < ranges; at += bytes_of(i++)) {
        const std::string_view memory = i % 2 ? "unknown" : i % 4 ? "device" : "managed";
        copies.expect_at(at, memory, "first byte");
        copies.expect_at(at + bytes_of(i) - 1, memory, "last byte");
    }
    copies.check();

    // The end of a context forgets all memory, because it is unknown which belonged to the context.
    for (CompiledCall& end : compiled_calls(run, calls_of({KIND_CONTEXT_DESTROY}))) {
        const uint64_t before = new_address(), after = new_address();
        allocate(run, "cuMemAlloc_v2", before, 10);
        call(run, end, failed);
        copies.expect_at(before, "device", fmt::format("failed {}", end.probe.symbol));
        call(run, end);
        copies.expect_at(before, "unknown", end.probe.symbol);
        allocate(run, "cuMemAlloc_v2", after, 1);
        copies.expect_at(after, "device", end.probe.symbol);
        run.call("cuMemFree_v2", {{ARG_ADDRESS, before}});
    }
    copies.check();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (entries(run, "allocations") > 1 && std::chrono::steady_clock::now() < until)
        run.report(); // deletes entries of ended contexts
    CHECK(entries(run, "allocations") == 1);
    CHECK(entries(run, "ranges") == 1);
    CHECK(entries(run, "physical_memory") == 0);
}

TEST_CASE("a process uses a quarter of the tables of addresses, and its other host memory is pageable",
          "[bpf][cudamemcpy]")
{
    need_bpf();
    FakeRun run("cudamemcpy --by kind,memory", {{"ranges", 80}});
    run.see_from_start();
    run.call("cuInit");
    const auto kind_at = [&](uint64_t address) {
        run.call("cuMemcpyHtoD_v2", {{ARG_SOURCE, address}, {ARG_BYTES, 1}});
        const std::vector<json> rows = run.report();
        REQUIRE(rows.size() == 1);
        CHECK(rows[0]["kind"] == "H2D");
        return rows[0]["source"].get<std::string>();
    };
    std::vector<uint64_t> addresses(6);
    std::ranges::generate(addresses, new_address);
    for (const uint64_t address : addresses) // each is charged as 4 entries of 20
        allocate(run, "cuMemHostAlloc", address, 1);
    CHECK(run.losses() == std::map<std::string, uint64_t>{{"state_lost", 1}});
    CHECK(kind_at(addresses[4]) == "pinned");
    CHECK(kind_at(addresses[5]) == "pageable");
    run.call("cuMemFreeHost", {{ARG_ADDRESS, addresses[0]}});
    allocate(run, "cuMemHostAlloc", addresses[5], 1);
    CHECK(kind_at(addresses[5]) == "pinned");
    CHECK(kind_at(addresses[0]) == "pageable");
    run.call("cuCtxDestroy_v2", {{ARG_HANDLE, 1}}); // some of the memory may still be pinned
    CHECK(kind_at(addresses[5]) == "host");
    for (const uint64_t address : addresses)
        allocate(run, "cuMemHostAlloc", address, 1);
    CHECK(run.losses() == std::map<std::string, uint64_t>{{"state_lost", 1}});
}
