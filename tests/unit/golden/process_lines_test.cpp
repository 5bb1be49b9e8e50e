// SPDX-License-Identifier: Apache-2.0
// Tests lines about single processes, and the table of leaks. golden/lines.txt has the expected output.
#include "../output/captured.hpp"
#include "bpf/shared/call.h"
#include "golden.hpp"
#include "tools/cudagraph/columns.hpp"
#include "tools/gpualloc/lines.hpp"
#include "tools/nvioctl/xid_line.hpp"

using namespace gpusnoop;

namespace {

constexpr std::string_view stack[] = {"make (program.cpp:7)", "main"};
const std::vector<std::string> frames(std::begin(stack), std::end(stack));

void storms(Output& output, const Options&)
{
    golden::TestProcesses processes;
    cudagraph::print_storm(output, {golden::trainer, 1000, 7, {}}, processes, golden::wall_ns, frames);
    cudagraph::print_storm(output, {golden::server, 0, 8, {}}, processes, golden::wall_ns, {});
}

Holdings held()
{
    Holdings holdings;
    auto allocate = [&](const image& who, holding what, int32_t at, uint64_t n, uint64_t bytes_each) {
        CallDelta call = golden::calls_of(who, KIND_ALLOC, "cuMemAlloc_v2", n, 1000);
        call.key.memory.holding = static_cast<uint8_t>(what);
        call.key.stack = at;
        call[MEMORY_BYTES] = n * bytes_each;
        call[MEMORY_LAST_BYTES] = bytes_each;
        holdings.add(call);
    };
    allocate(golden::trainer, HOLDING_DEVICE, 3, 40, 2'000'000);
    allocate(golden::trainer, HOLDING_POOL, 4, 500, 4096);
    allocate(golden::trainer, HOLDING_RESERVED, 5, 1, 1 << 30); // reserved addresses do not count as memory
    allocate(golden::solver, HOLDING_PINNED, 6, 7, 100'000);
    return holdings;
}

std::vector<std::string> stack_of(const LeakKey& key)
{
    return {fmt::format("step {} (program.cpp:{})", key.stack, key.caller & 0xff), "main"};
}

void exits(Output& output, const Options&)
{
    golden::TestProcesses processes;
    const Holdings holdings = held();
    for (const image& who : {golden::trainer, golden::solver, golden::server})
        gpualloc::print_exit(output, who, holdings, processes, golden::wall_ns, stack_of);
}

void leaks(Output& output, const Options& options)
{
    golden::TestProcesses processes;
    std::map<LeakKey, Leak> leaks;
    leaks[{golden::trainer, HOLDING_DEVICE, 3, 0x401000}] = {{40, 80'000'000}, 61'000'000'000, {}};
    leaks[{golden::solver, HOLDING_MANAGED, 4, 0x401007}] = {{2, 200'000'000}, 5'500'000'000, {}};
    gpualloc::print_leaks(output, leaks, options, processes, golden::wall_ns, 2.0, stack_of);
}

void xids(Output& output, const Options&)
{
    golden::TestProcesses processes;
    constexpr uint64_t second = 1'000'000'000;
    XidReport report{31, 100 * second, "0000:3b:00", "Ch 00000008, intr 10000000", golden::trainer.pid, "trainer"};
    recent_calls recent{};
    recent.image = golden::trainer;
    recent.count = 3;
    recent.calls[0] = {
        99 * second,  12'300, 0x20800102'c020462a, 0x51, {255, NODE_NVIDIA_CTL, OUTCOME_STATUS}, ENTRY_IOCTL,
        CALL_SUBJECT, {}};
    recent.calls[1] = {
        99 * second + second / 2, 5'000, 0xc0104629, -9, {1, NODE_NVIDIA_GPU, OUTCOME_ERRNO}, ENTRY_IOCTL, 0, {}};
    recent.calls[2].kind = 0; // 0: the entry is just being written
    nvioctl::print_xid(output, report, recent, processes, golden::wall_ns);
    // An Xid without recorded calls, one without a text in the log, and one with an unknown number.
    nvioctl::print_xid(output, report, {}, processes, golden::wall_ns);
    nvioctl::print_xid(output, {79, 0, "0000:3b:00", "", {}, ""}, {}, processes, golden::wall_ns);
    nvioctl::print_xid(output, {9999, 0, "", "", 77, ""}, {}, processes, golden::wall_ns);
}

struct Lines {
    const char* name;
    void (*print)(Output&, const Options&);
};
constexpr Lines all_lines[] = {
    {"cudagraph --storms", storms}, {"gpualloc --exited", exits}, {"gpualloc --leaks", leaks}, {"nvioctl --xid", xids}};

} // namespace

TEST_CASE("lines about processes match the golden file", "[golden]")
{
    const captured::Zone zone("UTC");
    std::string all;
    for (const Lines& lines : all_lines) {
        std::set<std::string> shown;
        std::string text[2];
        for (const bool json : {false, true}) {
            Options options;
            options.json = json;
            text[json] = golden::written(options, [&](Output& output) { lines.print(output, options); });
        }
        all += golden::section(lines.name, text[0], text[1], shown);
    }
    golden::compare("lines", all);
}
