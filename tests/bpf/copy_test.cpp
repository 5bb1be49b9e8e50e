// SPDX-License-Identifier: Apache-2.0
// Copies, sets and prefetches: what the kernel side reports for each function, and how it counts batches, captured and
// failed copies, and copies whose arguments are unreadable.
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <sys/mman.h>
#include <tuple>

using namespace gpusnoop;

namespace {

constexpr CallSet copies_and_batches{copy_calls.kinds | batch_calls.kinds};
constexpr uint64_t failed = 719, per_thread_stream = 2;

// ---- Every function, called with every direction, memory type and array that it takes

struct Choice {
    std::string_view kind; // in reports
    std::string_view from, to;
    uint64_t number; // enum cudaMemcpyKind
};

constexpr uint64_t by_address = 4, hip_without_units = 1024;
constexpr Choice choices[] = {
    {"H2H", "host", "host", 0},
    {"H2D", "host", "device", 1},
    {"H2D", "host", "array", 1},
    {"D2H", "device", "host", 2},
    {"D2H", "array", "host", 2},
    {"D2D", "device", "device", 3},
    {"D2D", "array", "array", 3},
    {"D2D", "device", "device", hip_without_units},
    {"unknown", "unknown", "unknown", by_address},
    {"unknown", "unknown", "array", by_address},
    {"D2D", "array", "array", by_address},
    {"P2P", "device", "device", 0},
    {"P2P", "device", "array", 0},
    {"set", "", "unknown", 0},
    {"prefetch", "", "unknown", 0},
};

// Returns the kind that the function's name gives, or "".
std::string_view kind_by_name(std::string_view function)
{
    constexpr std::pair<std::string_view, std::string_view> kinds[] = {
        {"Memset", "set"}, {"Prefetch", "prefetch"}, {"Peer", "P2P"}, {"HtoD", "H2D"}, {"HtoA", "H2D"}, {"DtoH", "D2H"},
        {"AtoH", "D2H"},   {"DtoD", "D2D"},          {"DtoA", "D2D"}, {"AtoD", "D2D"}, {"AtoA", "D2D"}};
    for (const auto& [part, kind] : kinds)
        if (function.find(part) != std::string_view::npos)
            return kind;
    return "";
}

bool has(std::string_view function, std::string_view part)
{
    return function.find(part) != std::string_view::npos;
}

// True if the function's widths count elements when it copies from or to an array.
bool counts_elements(std::string_view function)
{
    return has(function, "daMemcpy3D") || has(function, "hipMemcpy3D") || has(function, "3DBatch") ||
           has(function, "3DWith");
}

// Value of a memory type, in the enumeration that the function uses.
uint64_t type_number(const CompiledCall& call, std::string_view memory)
{
    const std::string_view function = call.probe.symbol;
    using Numbers = std::array<uint64_t, 4>; // host, device, array, and one that the address decides
    const Numbers numbers = counts_elements(function)                ? Numbers{1, 1, 2, 1}
                            : call.probe.library != Library::hip     ? Numbers{1, 2, 3, 4}
                            : call.probe.runtimes == (uint8_t{hip6}) ? Numbers{1, 2, 10, 11}
                                                                     : Numbers{0, 1, 2, 3};
    return numbers[memory == "host" ? 0 : memory == "device" ? 1 : memory == "array" ? 2 : 3];
}

// One end of a copy.
struct End {
    argument address, host, type, array;
};
constexpr End source{ARG_SOURCE, ARG_SOURCE_HOST, ARG_SOURCE_TYPE, ARG_SOURCE_ARRAY};
constexpr End destination{ARG_DESTINATION, ARG_DESTINATION_HOST, ARG_DESTINATION_TYPE, ARG_DESTINATION_ARRAY};

// True if a caller can make this choice for the function.
bool takes(const CompiledCall& call, const Choice& choice)
{
    const std::string_view function = call.probe.symbol, named = kind_by_name(function);
    const bool typed = call.passes(ARG_SOURCE_TYPE), only_pointers = typed && counts_elements(function);
    const bool directed = call.passes(ARG_DIRECTION), arrays = choice.from == "array" || choice.to == "array";
    if (!named.empty() && choice.kind != named)
        return false;
    if (named.empty() && (choice.kind == "P2P" || choice.kind == "set" || choice.kind == "prefetch"))
        return false;
    if (choice.number == hip_without_units && (!directed || call.probe.library != Library::hip))
        return false;
    if (arrays && !only_pointers && !(typed && named.empty()) &&
        !(call.passes(ARG_SOURCE_ARRAY) && call.passes(ARG_SOURCE)))
        return false;
    if (only_pointers)
        return choice.number == by_address;
    return !named.empty() || typed || directed || choice.number == by_address;
}

// Passes an end of this kind of memory, and returns the kind and address that a line must show.
std::pair<std::string, uint64_t> pass_end(CompiledCall& call, const End& end, std::string_view memory)
{
    const auto& passed = call.passed[0];
    if (!call.passes(end.address) && !call.passes(end.array))
        return {"device", 0}; // a variable, given by its name
    if (!call.passes(end.address))
        return {"array", passed.at(end.array)};
    if (call.passes(end.type))
        for (size_t element = 0; element < call.passed.size(); element++)
            call.pass(end.type, type_number(call, memory), element);
    const uint64_t array = 0xa77a0;
    if (call.passes(end.array)) {
        call.pass(end.array, memory == "array" ? array : 0);
        if (memory == "array")
            return {"array", array};
    }
    const bool is_host = memory == "host" && call.passes(end.host);
    return {std::string(memory), passed.at(is_host ? end.host : end.address)};
}

std::string_view kind_between(std::string_view from, std::string_view to)
{
    if (from == "unknown" || to == "unknown")
        return "unknown";
    return from == "host" ? to == "host" ? "H2H" : "H2D" : to == "host" ? "D2H" : "D2D";
}

// The values that a line of option -e must show.
struct Line {
    std::string_view function, layer, vendor, form, kind;
    uint64_t stream;
    std::string from{}, to{}; // kinds of memory; `from` is empty if there is no source
    uint64_t from_address = 0, to_address = 0;
    std::optional<uint64_t> bytes{};
    std::optional<uint64_t> result{}; // nullopt: not measured
    bool is_timed = false;
};

std::string text_of(const Line& line)
{
    return fmt::format("{} {} {} {} {}, stream {:#x}, {} to {}, {} to {:#x}, {} bytes, result {}, {}", line.function,
                       line.layer, line.vendor, line.form, line.kind, line.stream, line.from, line.to,
                       line.from.empty() ? "" : fmt::format("{:#x}", line.from_address), line.to_address,
                       line.bytes ? fmt::format("{}", *line.bytes) : "?",
                       line.result ? fmt::format("{}", *line.result) : "?", line.is_timed ? "timed" : "");
}

std::string text_of(const json& line)
{
    const auto text = [&](const char* key) { return line.value(key, ""); };
    const auto number = [&](const char* key) {
        return line.contains(key) ? fmt::format("{}", line[key].get<int64_t>()) : "?";
    };
    CHECK(line["copies"] == 1);
    CHECK(line["captured"] == 0);
    return fmt::format("{} {} {} {} {}, stream {}, {} to {}, {} to {}, {} bytes, result {}, {}", text("function"),
                       text("layer"), text("vendor"), text("form"), text("kind"), text("stream"), text("source"),
                       text("destination"), text("source_address"), text("destination_address"), number("bytes"),
                       number("result_code"), line.value("latency_ns", 0) > 0 ? "timed" : "");
}

// Chooses the call's arguments. Returns its lines: one per copy.
std::vector<Line> lines_of(FakeRun& run, CompiledCall& call, const Choice& choice, uint64_t number)
{
    const std::string_view function = call.probe.symbol;
    const bool per_thread = function.ends_with("_ptsz") || function.ends_with("_ptds") || function.ends_with("_spt");
    const bool list_3d = has(function, "3DBatch") || has(function, "3DWith"), list = has(function, "Batch") && !list_3d;
    const bool is_copy = choice.kind != "set" && choice.kind != "prefetch";
    if (call.passes(ARG_STREAM) && number % 2)
        call.pass(ARG_STREAM, 0);
    if (call.passes(ARG_DIRECTION))
        call.pass(ARG_DIRECTION, choice.number);
    const uint64_t stream = call.passes(ARG_STREAM) ? call.passed[0][ARG_STREAM] : 0;
    Line line{.function = function,
              .layer = call.probe.library == Library::runtime ? "runtime"
                       : call.probe.library == Library::hip   ? "hip"
                                                              : "driver",
              .vendor = call.probe.library == Library::hip ? "amd" : "nvidia",
              .form = has(function, "Async") ? "async" : "sync",
              .kind = choice.kind,
              .stream = stream       ? stream
                        : per_thread ? per_thread_stream
                                     : 0};
    std::vector<Line> lines;
    if (list) {
        const uint64_t to[] = {0x7e0000000001, 0x7e0000000002, 0x7e0000000003}, bytes[] = {number, 0, 70'000};
        call.pass(ARG_COUNT, 3);
        call.pass(ARG_DESTINATION, reinterpret_cast<uint64_t>(run.memory({to[0], to[1], to[2]})));
        call.pass(ARG_BYTES, reinterpret_cast<uint64_t>(run.memory({bytes[0], bytes[1], bytes[2]})));
        if (is_copy)
            call.pass(ARG_SOURCE, reinterpret_cast<uint64_t>(run.memory({to[2], to[0], to[1]})));
        line.from = is_copy ? "unknown" : "";
        line.to = "unknown";
        for (size_t i = 0; i < 3; i++) {
            line.bytes = bytes[i];
            line.to_address = to[i];
            line.from_address = to[(i + 2) % 3];
            lines.push_back(line);
        }
        return lines;
    }
    std::tie(line.to, line.to_address) = pass_end(call, destination, choice.to);
    if (is_copy)
        std::tie(line.from, line.from_address) = pass_end(call, source, choice.from);
    if (kind_by_name(function).empty() && (choice.number == by_address || !call.passes(ARG_DIRECTION)))
        line.kind = kind_between(line.from, line.to);
    const bool unsized = counts_elements(function) && (line.from == "array" || line.to == "array");
    for (size_t element = 0; element < (list_3d && call.passes(ARG_COUNT) ? call.passed.size() : 1); element++) {
        uint64_t bytes = has(function, "D16") ? 2 : has(function, "D32") ? 4 : 1;
        for (const auto& [factor, value] : {std::pair(ARG_BYTES, number + element), {ARG_HEIGHT, 3}, {ARG_DEPTH, 2}})
            if (call.passes(factor)) {
                call.pass(factor, value, element);
                bytes *= value;
            }
        if (!unsized)
            line.bytes = bytes;
        if (element) {
            line.to_address = call.passed[element][ARG_DESTINATION];
            line.from_address = call.passed[element][ARG_SOURCE];
        }
        lines.push_back(line);
    }
    return lines;
}

// ---- Sums over calls

struct Made {
    std::string_view function;
    Arguments arguments{};
    std::string_view kind{};                         // in reports; empty if the call does not copy
    std::vector<std::optional<uint64_t>> sizes = {}; // of each copy; nullopt: unknown
    uint64_t result = 0;
    bool captured = false;
    unsigned times = 1;
    enum { readable, unreadable_block, unreadable_list } arguments_are = readable;
};

using Sums = std::map<std::string, uint64_t>; // without zeros

Sums sums_of(const Made& made, bool results)
{
    uint64_t bytes = 0, unsized = 0, small = 0;
    for (const auto& size : made.sizes) {
        bytes += size.value_or(0);
        unsized += !size;
        small += size && *size < 65'536;
    }
    const uint64_t n = made.times, copies = n * made.sizes.size();
    if (results && made.result)
        return {{"errors", n}, {"failed_bytes", n * bytes}};
    if (made.captured)
        return {{"captured", copies}};
    return {{"copies", copies},   {"calls", n},
            {"bytes", n * bytes}, {"unsized", n * unsized},
            {"small", n * small}, {"synchronous", has(made.function, "Async") || made.kind == "set" ? 0 : copies}};
}

using SumsByRow = std::map<std::string, Sums>; // by function, kind and, with -x, result

std::string row_name(std::string_view function, std::string_view kind, std::string_view result)
{
    return fmt::format("{} {}{}{}", function, kind, result.empty() ? "" : " ", result);
}

std::string_view name_of(uint64_t result)
{
    return result == failed ? "CUDA_ERROR_LAUNCH_FAILED"
           : result == 1    ? "CUDA_ERROR_INVALID_VALUE"
           : result == 2    ? "CUDA_ERROR_OUT_OF_MEMORY"
                            : "error 12345";
}

void add(SumsByRow& all, const std::string& row, const Sums& sums)
{
    for (const auto& [name, value] : sums)
        if (value)
            all[row][name] += value;
}

SumsByRow sums_of(const std::vector<json>& rows)
{
    SumsByRow all;
    for (const json& row : rows)
        for (const char* name :
             {"copies", "calls", "bytes", "unsized", "small", "synchronous", "captured", "errors", "failed_bytes"})
            if (row.contains(name))
                add(all,
                    row_name(row["function"].get<std::string>(), row["kind"].get<std::string>(),
                             row.value("result", "")),
                    {{name, row[name]}});
    return all;
}

uint64_t address_of(const std::vector<uint64_t>& words)
{
    return reinterpret_cast<uint64_t>(words.data());
}

// Memory that ends at an unreadable page.
class MemoryWithEnd {
public:
    MemoryWithEnd() { ::mprotect(pages_ + page, page, PROT_NONE); }
    MemoryWithEnd(const MemoryWithEnd&) = delete;
    MemoryWithEnd& operator=(const MemoryWithEnd&) = delete;
    ~MemoryWithEnd() { ::munmap(pages_, 2 * page); }

    // Returns the address of these words at the end.
    uint64_t last(std::initializer_list<uint64_t> words)
    {
        uint64_t* const to = reinterpret_cast<uint64_t*>(pages_ + page) - words.size();
        std::ranges::copy(words, to);
        return reinterpret_cast<uint64_t>(to);
    }

private:
    static constexpr size_t page = 4096;
    std::byte* const pages_ =
        static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

constexpr uint64_t device_memory = 0x7e0000000000;
constexpr size_t read_one_by_one = 4096; // copies of a batch
constexpr uint64_t most_copies = 1 << 20;

// Calls whose sums are known. They refer to memory of `run` and to the lists.
struct Calls {
    explicit Calls(FakeRun& run);

    std::vector<uint64_t> to, from, bytes; // lists with more elements than are read
    MemoryWithEnd end;
    std::vector<Made> all;
};

Calls::Calls(FakeRun& run)
    : to(read_one_by_one + 1, device_memory), from(read_one_by_one + 1), bytes(read_one_by_one + 1, 1000)
{
    std::ranges::fill(from, address_of(from)); // host memory
    const auto list = [&](std::initializer_list<uint64_t> words) {
        return reinterpret_cast<uint64_t>(run.memory(words));
    };
    const auto batch = [&](uint64_t count, uint64_t sizes) -> Arguments {
        return {
            {ARG_DESTINATION, address_of(to)}, {ARG_SOURCE, address_of(from)}, {ARG_BYTES, sizes}, {ARG_COUNT, count}};
    };
    const auto known = [](size_t count) { return std::vector<std::optional<uint64_t>>(count, 1000); };
    const auto unknown = [](size_t count) { return std::vector<std::optional<uint64_t>>(count); };
    const auto stream = [](uint64_t handle, Arguments arguments = {}) {
        arguments[ARG_STREAM] = handle;
        return arguments;
    };
    const auto captured = [&](std::string_view function, Arguments arguments, uint64_t handle,
                              std::vector<std::optional<uint64_t>> sizes, std::string_view kind) {
        return Made{function, stream(handle, std::move(arguments)), kind, std::move(sizes), 0, true};
    };
    constexpr uint64_t huge = uint64_t{1} << 40;
    all = {
        {"cuMemAlloc_v2", {{ARG_OUT, list({device_memory})}, {ARG_BYTES, 1 << 20}}},
        // directions by address
        {"cuMemcpy", {{ARG_DESTINATION, device_memory}, {ARG_SOURCE, address_of(from)}, {ARG_BYTES, 10}}, "H2D", {10}},
        {"cuMemcpy", {{ARG_DESTINATION, address_of(from)}, {ARG_SOURCE, device_memory}, {ARG_BYTES, 11}}, "D2H", {11}},
        {"cuMemcpy", {{ARG_DESTINATION, device_memory + 7}, {ARG_SOURCE, device_memory}, {ARG_BYTES, 7}}, "D2D", {7}},
        {"cuMemcpy", {{ARG_DESTINATION, address_of(to)}, {ARG_SOURCE, address_of(from)}, {ARG_BYTES, 8}}, "H2H", {8}},
        {"cuMemcpy",
         {{ARG_DESTINATION, device_memory - 1}, {ARG_SOURCE, device_memory}, {ARG_BYTES, 9}},
         "unknown",
         {9}},
        // results
        {"cuMemcpyHtoD_v2", {{ARG_BYTES, 99}}, "H2D", {99}, failed, false, 7},
        {"cuMemcpyDtoHAsync_v2", {{ARG_BYTES, 70'001}, {ARG_STREAM, 0}}, "D2H", {70'001}, 2, false, 3},
        {"cuMemsetD32_v2", {{ARG_BYTES, 25}}, "set", {100}, 12345},
        // captures
        {"cuStreamBeginCapture_v2", stream(1)},
        captured("cuMemcpyAsync", {{ARG_DESTINATION, 0}, {ARG_SOURCE, 0}, {ARG_BYTES, 999}}, 1, {999}, "unknown"),
        captured("cuMemsetD8Async", {{ARG_BYTES, 5}}, 1, {5}, "set"),
        captured("cuMemcpyBatchAsync", batch(4, address_of(bytes)), 1, known(4), "H2D"),
        {"cuMemcpyDtoDAsync_v2", stream(2, {{ARG_BYTES, 70'000}}), "D2D", {70'000}, 0, false, 7}, // another stream
        {"cuMemcpyHtoD_v2", {{ARG_BYTES, 77}}, "H2D", {77}, 0, false, 11},                        // synchronous
        {"cuStreamEndCapture", stream(1)},
        {"cuStreamBeginCapture_v2_ptsz", stream(0)}, // of the thread's own stream
        captured("cuMemcpyHtoDAsync_v2_ptsz", {{ARG_BYTES, 7}}, 0, {7}, "H2D"),
        {"cuMemcpyHtoD_v2_ptds", {{ARG_BYTES, 8}}, "H2D", {8}}, // synchronous
        {"cuStreamEndCapture_ptsz", stream(0)},
        {"cuMemsetD8Async", stream(1, {{ARG_BYTES, 6}}), "set", {6}},
        // batches
        {"cuMemcpyBatchAsync_v2", batch(5, list({1, 65'535, 65'536, 0, 77})), "H2D", {1, 65'535, 65'536, 0, 77}},
        {"cuMemcpyBatchAsync_v2", batch(2, list({5, 7})), "H2D", {5, 7}, failed, false, 2},
        {"cuMemcpyBatchAsync_ptsz", batch(3, list({10, uint64_t{1} << 63, 20})), "H2D", {10, {}, 20}},
        {"cuMemcpyBatchAsync", batch(0, 0), "unknown", {}, 0, false, 5},
        {"cuMemPrefetchBatchAsync", {{ARG_DESTINATION, 0}, {ARG_BYTES, 0}, {ARG_COUNT, 0}}, "prefetch", {}, failed},
        {"cuMemcpyBatchAsync", batch(4095, address_of(bytes)), "H2D", known(4095)},
        {"cuMemcpyBatchAsync", batch(4096, address_of(bytes)), "H2D", known(4096), failed},
        {"cuMemcpy3DBatchAsync", {{ARG_COUNT, 1}, {ARG_BYTES, 6}, {ARG_HEIGHT, 5}, {ARG_DEPTH, 4}}, "unknown", {120}},
        // unreadable arguments
        {"cuMemcpy3DPeer", {}, "P2P", unknown(1), 0, false, 1, Made::unreadable_block},
        {"cuMemcpy2DAsync_v2", {}, "unknown", unknown(1), 1, false, 2, Made::unreadable_block},
        {"cuMemcpy3DBatchAsync_v2", {{ARG_COUNT, 3}}, "unknown", unknown(3), 0, false, 1, Made::unreadable_block},
        {"cuMemcpyBatchAsync", batch(3, FakeRun::unreadable), "unknown", unknown(3), failed, false, 1,
         Made::unreadable_list},
        {"cuMemPrefetchBatchAsync",
         {{ARG_DESTINATION, FakeRun::unreadable}, {ARG_BYTES, FakeRun::unreadable}, {ARG_COUNT, 2}},
         "prefetch",
         unknown(2),
         0,
         false,
         1,
         Made::unreadable_list},
        // impossible sizes
        {"cuMemsetD8_v2", {{ARG_BYTES, uint64_t{1} << 48}}, "set", unknown(1)},
        {"cuMemsetD2D32_v2", {{ARG_BYTES, huge}, {ARG_HEIGHT, huge}}, "set", unknown(1)},
        {"cuMemcpy2D_v2", {{ARG_BYTES, huge}, {ARG_HEIGHT, huge}}, "unknown", unknown(1)},
        {"cuMemcpy3DPeerAsync", {{ARG_BYTES, huge}, {ARG_HEIGHT, huge}, {ARG_DEPTH, huge}}, "P2P", unknown(1)},
    };
    for (const uint64_t size : {uint64_t{0}, uint64_t{65'535}, uint64_t{65'536}, huge, (uint64_t{1} << 48) - 1})
        for (const std::string_view function : {"cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"})
            all.push_back({function, {{ARG_BYTES, size}}, "H2D", {size}, 0, false, 3});
    all.push_back({"cuMemcpyDtoH_v2", {{ARG_BYTES, ~uint64_t{}}}, "D2H", unknown(1)});
}

// Calls with lists that are read in part. Their rows have other kinds for the rest.
struct LongBatch {
    uint64_t count;
    std::initializer_list<uint64_t> list; // of sizes, at the end of readable memory; empty: long enough
    uint64_t known, known_bytes, unknown;
};
constexpr LongBatch long_batches[] = {
    {4097, {}, 4096, 4'096'000, 1},
    {uint64_t{1} << 40, {}, 4096, 4'096'000, most_copies - 4096},
    {6, {40, 50}, 2, 90, 4},
};

} // namespace

TEST_CASE("every copy function is reported with the arguments that a compiled call passed", "[bpf][cudamemcpy]")
{
    need_bpf();
    for (const bool results : {false, true}) {
        INFO("results: " << results);
        FakeRun run(fmt::format("cudamemcpy -e --api both {}", results ? "-l" : ""));
        std::vector<Line> expected;
        uint64_t number = 1000;
        for (CompiledCall& call : compiled_calls(run, copies_and_batches)) {
            INFO(call.probe.symbol);
            const size_t before = expected.size();
            for (const Choice& choice : choices) {
                if (!takes(call, choice))
                    continue;
                std::vector<Line> lines = lines_of(run, call, choice, number += 5);
                const uint64_t result = number % 3 ? 0 : failed;
                run.enter(call.probe, *call.call);
                if (call.probe.library == Library::runtime)
                    for (const char* inner : {"cuMemcpyHtoD_v2", "cuMemsetD8_v2"})
                        run.call(inner, {{ARG_BYTES, 1}}, failed);
                run.leave(result);
                lines.front().is_timed = results; // a batch has one duration
                for (Line& line : lines) {
                    line.result = results ? std::optional(result) : std::nullopt;
                    expected.push_back(std::move(line));
                }
            }
            CHECK(expected.size() > before);
        }
        run.call("cuMemsetD8_v2", {{ARG_DESTINATION, 0x40}, {ARG_BYTES, 9}}, failed);
        const std::vector<json> lines = run.report();
        REQUIRE(lines.size() == expected.size() + 1);
        for (size_t i = 0; i < expected.size(); i++)
            CHECK(text_of(lines[i]) == text_of(expected[i]));
        CHECK(lines.back()["destination_address"] == "0x40"); // the last runtime call has ended
        CHECK(run.losses().empty());

        run.break_memory();
        run.call("cuMemcpy2D_v2");
        const uint64_t nothing = FakeRun::unreadable;
        const Arguments list = {
            {ARG_DESTINATION, nothing}, {ARG_SOURCE, nothing}, {ARG_BYTES, nothing}, {ARG_COUNT, 3}};
        run.call("cuMemcpyBatchAsync", list);
        std::vector<json> unreadable = run.report();
        REQUIRE(unreadable.size() == 2); // the rest of a batch has one line
        for (json& line : unreadable) {
            CHECK(line["copies"] == (&line == &unreadable[0] ? 1 : 3));
            CHECK_FALSE(line.contains("bytes"));
            for (const char* key : {"kind", "source", "destination"})
                CHECK(line[key] == "unknown");
        }
        CHECK(run.losses() == std::map<std::string, uint64_t>{{"arguments_unreadable", 2}});
        run.call("cuMemcpyHtoD_v2", {{ARG_BYTES, 65'536}});
        CHECK_THAT(run.report_in_text(),
                   Catch::Matchers::Matches(" +TIME\\(s\\) +PID +TID +COMM .* KIND +FORM +SIZE +FROM +TO .*FUNCTION\n"
                                            ".* H2D +sync +64.0K +host +device .*cuMemcpyHtoD_v2\n"));
    }
}

TEST_CASE("copies are summed by function, kind and result", "[bpf][cudamemcpy]")
{
    need_bpf();
    // With 16 rows, the table is full, and the front end counts the other calls.
    for (const std::string_view mode : {"", "-l --table-rows 16", "-x --table-rows 16"}) {
        INFO(mode);
        FakeRun run(fmt::format("cudamemcpy --by api,kind {}", mode));
        const bool only_failed = mode.starts_with("-x"), results = !mode.empty();
        Calls calls(run);
        SumsByRow expected;
        uint64_t unreadable = 0;
        for (const Made& made : calls.all)
            for (unsigned i = 0; i < made.times; i++) {
                if (made.arguments_are == Made::unreadable_block)
                    run.break_memory();
                run.call(made.function, made.arguments, made.result);
            }
        for (const Made& made : calls.all) {
            // lists are read when the call returns
            const bool is_read = !only_failed || made.result || !has(made.function, "Batch");
            unreadable += made.arguments_are != Made::readable && is_read ? made.times : 0;
            if (!made.kind.empty() && (made.result || !only_failed))
                add(expected, row_name(made.function, made.kind, only_failed ? name_of(made.result) : ""),
                    sums_of(made, results));
        }
        const std::vector<json> rows = run.report();
        CHECK(sums_of(rows) == expected);
        for (const json& row : rows) {
            const std::string_view form = has(row["function"].get<std::string>(), "Async") ? "async" : "sync";
            CHECK(row.value("form", "") == (mode.starts_with("-l") ? form : ""));
        }
        CHECK(run.losses() == std::map<std::string, uint64_t>{{"arguments_unreadable", unreadable}});

        for (const LongBatch& batch : long_batches) { // in the next interval
            const uint64_t sizes = batch.list.size() ? calls.end.last(batch.list) : address_of(calls.bytes);
            run.call("cuMemcpyBatchAsync",
                     {{ARG_DESTINATION, address_of(calls.to)},
                      {ARG_SOURCE, address_of(calls.from)},
                      {ARG_BYTES, sizes},
                      {ARG_COUNT, batch.count}},
                     only_failed ? failed : 0);
            expected.clear();
            if (only_failed)
                add(expected, "cuMemcpyBatchAsync H2D CUDA_ERROR_LAUNCH_FAILED",
                    {{"errors", 1}, {"failed_bytes", batch.known_bytes}});
            else
                add(expected, "cuMemcpyBatchAsync H2D",
                    {{"copies", batch.known}, {"calls", 1}, {"bytes", batch.known_bytes}, {"small", batch.known}});
            if (!only_failed)
                add(expected, "cuMemcpyBatchAsync unknown", {{"copies", batch.unknown}, {"unsized", batch.unknown}});
            CHECK(sums_of(run.report()) == expected);
        }
        CHECK(run.losses() == std::map<std::string, uint64_t>{{"arguments_unreadable", 1}});
    }
}

TEST_CASE("copies count in the selected layer, and when they return", "[bpf][cudamemcpy]")
{
    need_bpf();
    for (const std::string_view api : {"driver", "runtime"}) {
        INFO(api);
        FakeRun run(fmt::format("cudamemcpy -l --by api,kind --api {}", api));
        CHECK(run.handles("cuMemcpyHtoD_v2") == (api == "driver"));
        CHECK(run.handles("cudaMemcpy") == (api == "runtime"));
        CHECK(run.handles("hipMemcpy"));
        run.enter("cudaMemcpy", {{ARG_BYTES, 5}, {ARG_DIRECTION, 1}});
        run.call("cuMemcpyHtoD_v2", {{ARG_BYTES, 5}});
        run.call("cuMemcpyHtoD_v2", {{ARG_BYTES, 6}});
        run.leave();
        run.call("cuMemcpyHtoD_v2", {{ARG_BYTES, 5}});
        run.call("hipMemcpyHtoD", {{ARG_BYTES, 3}});
        const SumsByRow hip = {
            {"hipMemcpyHtoD H2D", {{"copies", 1}, {"calls", 1}, {"bytes", 3}, {"small", 1}, {"synchronous", 1}}}};
        SumsByRow expected = hip;
        if (api == "driver")
            expected["cuMemcpyHtoD_v2 H2D"] = {
                {"copies", 3}, {"calls", 3}, {"bytes", 16}, {"small", 3}, {"synchronous", 3}};
        else
            expected["cudaMemcpy H2D"] = {{"copies", 1}, {"calls", 1}, {"bytes", 5}, {"small", 1}, {"synchronous", 1}};
        CHECK(sums_of(run.report()) == expected);
        CHECK(run.losses().empty());
        if (api == "runtime")
            continue;
        const uint64_t list = reinterpret_cast<uint64_t>(run.memory({20, 30}));
        const Arguments batch = {{ARG_DESTINATION, list}, {ARG_BYTES, list}, {ARG_COUNT, 2}};
        run.enter("cuMemPrefetchBatchAsync", batch); // a host function may copy, too
        run.call("cuMemPrefetchBatchAsync_ptsz", {{ARG_DESTINATION, list}, {ARG_BYTES, list}, {ARG_COUNT, 1}}, failed);
        run.call("cuMemsetD8_v2", {{ARG_BYTES, 4}}, failed);
        run.leave();
        run.enter("cuMemPrefetchBatchAsync", batch);
        run.jump_out();
        run.call("cuMemsetD8_v2", {{ARG_BYTES, 5}});
        CHECK(run.losses() == std::map<std::string, uint64_t>{{"calls_left", 1}});
        run.leave_unseen("cuMemPrefetchBatchAsync");
        CHECK(run.losses() == std::map<std::string, uint64_t>{{"ends_unmatched", 1}});
        const std::vector<json> rows = run.report();
        CHECK(
            sums_of(rows) ==
            SumsByRow{{"cuMemPrefetchBatchAsync prefetch", {{"copies", 2}, {"calls", 1}, {"bytes", 50}, {"small", 2}}},
                      {"cuMemPrefetchBatchAsync_ptsz prefetch", {{"errors", 1}, {"failed_bytes", 20}}},
                      {"cuMemsetD8_v2 set",
                       {{"copies", 1}, {"calls", 1}, {"bytes", 5}, {"small", 1}, {"errors", 1}, {"failed_bytes", 4}}}});
        for (const json& row : rows) // a batch has one duration
            CHECK((row["function"] == "cuMemsetD8_v2" || row["latency_total_ns"] == row["latency_max_ns"]));
    }
}

TEST_CASE("histograms count sizes of copies, durations of calls, and rates of synchronous copies", "[bpf][cudamemcpy]")
{
    need_bpf();
    using namespace std::chrono_literals;
    constexpr auto duration = 300us;
    struct Case {
        std::string_view measure, unit;
        std::map<std::string, uint64_t> totals; // by kind
    };
    for (const auto& [measure, unit, totals] :
         {Case{"size", "bytes", {{"H2D", 7}, {"D2H", 1}, {"set", 1}, {"prefetch", 3}}},
          Case{"latency", "usecs", {{"H2D", 7}, {"D2H", 1}, {"set", 1}, {"prefetch", 1}}},
          Case{"rate", "MB/s", {{"H2D", 2}, {"D2H", 1}}}}) {
        INFO(measure);
        FakeRun run(fmt::format("cudamemcpy -H {}", measure));
        const auto call = [&](std::string_view function, Arguments arguments, uint64_t result = 0) {
            run.enter(function, arguments);
            for (const auto until = std::chrono::steady_clock::now() + duration;
                 std::chrono::steady_clock::now() < until;)
                ;
            run.leave(result);
        };
        for (unsigned i = 0; i < 2; i++)
            call("cuMemcpyHtoD_v2", {{ARG_BYTES, 3'000'000}});
        call("cuMemcpyHtoD_v2", {{ARG_BYTES, 0}}, failed);
        for (unsigned i = 0; i < 4; i++)
            call("cuMemcpyHtoDAsync_v2", {{ARG_BYTES, 100}});
        call("cuMemcpyDtoH_v2", {{ARG_BYTES, 30'000}});
        call("cuMemsetD8_v2", {{ARG_BYTES, 1000}});
        const uint64_t list = reinterpret_cast<uint64_t>(run.memory({100, 200, 300}));
        call("cuMemPrefetchBatchAsync", {{ARG_DESTINATION, list}, {ARG_BYTES, list}, {ARG_COUNT, 3}});
        std::map<std::string, uint64_t> got;
        for (const json& histogram : run.report()) {
            CHECK(histogram["measure"] == measure);
            CHECK(histogram["unit"] == unit);
            got[histogram["kind"]] += histogram["total"].get<uint64_t>();
            for (const json& bucket : histogram["buckets"]) {
                if (measure == "rate") // at least 300 us for 3,000,000 bytes are at most 10,000 MB/s
                    CHECK(bucket["low"] <= (histogram["kind"] == "H2D" ? 10'000 : 100));
                else if (measure == "latency")
                    CHECK(bucket["high"] >= 300);
                else
                    for (const uint64_t size : {0, 100, 200, 300, 1000, 30'000, 3'000'000})
                        if (bucket["low"] <= size && size <= bucket["high"])
                            got[fmt::format("{} {}", histogram["kind"].get<std::string>(), size)] = bucket["count"];
            }
        }
        std::map<std::string, uint64_t> expected = totals;
        if (measure == "size")
            expected.merge(std::map<std::string, uint64_t>{{"H2D 0", 1},
                                                           {"H2D 100", 4},
                                                           {"H2D 3000000", 2},
                                                           {"D2H 30000", 1},
                                                           {"set 1000", 1},
                                                           {"prefetch 100", 1},
                                                           {"prefetch 200", 1},
                                                           {"prefetch 300", 1}});
        CHECK(got == expected);
        CHECK(run.losses().empty());
    }
}
