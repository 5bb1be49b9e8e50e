// SPDX-License-Identifier: Apache-2.0
#include "bpf/shared/histogram.h"
#include "bpf/shared/record.h"
#include "golden.hpp"
#include "tools/gpualloc/columns.hpp"

using namespace gpusnoop;

namespace {

struct GpuAlloc : golden::TestedTool {
    static constexpr const char* name = "gpualloc";
    static constexpr const char* sort = "live_bytes";
    using Settings = gpualloc::Settings;
    static constexpr auto validate_options = gpualloc::validate_options;

    static constexpr const char* modes[] = {"--by namespace",
                                            "-T",
                                            "-x --by api,kind",
                                            "-X -U -s allocs -r 1",
                                            "--by stack --api runtime",
                                            "--nvml --columns +DEVICE,+POOL,+VMM,+MANAGED,+PINNED,+FREE/s,+CHURN/s",
                                            "--by kind,size,device,api,pid,comm,thread,container,pod,namespace,cgroup",
                                            "-H size --by kind,api",
                                            "-H latency -L",
                                            "-H lifetime -P -m",
                                            "-H size -x"};
    static constexpr const char* full_table = "--nvml";
    static constexpr const char* by = "size stack device api";
    static constexpr const char* sums = "live_bytes live_allocations device_bytes pool_bytes vmm_bytes array_bytes "
                                        "managed_bytes pinned_bytes registered_bytes reserved_bytes allocs frees "
                                        "allocated_bytes freed_bytes failures out_of_memory released released_bytes "
                                        "unknown_frees untracked unsized captured trims";

    static bool parse_option(Settings& s, std::string_view word, std::istream&)
    {
        s.nvml_library = "libnvidia-ml.so.1";
        return word == "--nvml";
    }
    static golden::Measures measures(const Settings& s, const Options&)
    {
        return {s.latency || s.histogram_of == gpualloc::Measure::lifetime, true};
    }

    static CallDelta memory(const image& who, probe_kind kind, std::string_view symbol, holding what, uint64_t n,
                            uint64_t bytes_each, int result = 0)
    {
        CallDelta call = golden::calls_of(who, kind, symbol, n, 2'000 + bytes_each / 100);
        call.key.memory.holding = static_cast<uint8_t>(what);
        call.key.memory.size = bytes_each ? static_cast<uint16_t>(histogram_bucket(bytes_each)) : uint16_t{BUCKET_NONE};
        call.key.subject = ends_with_context(what) ? 7 : 0; // subject: number of the context
        call.key.result = result;
        call[CALL_LAST] = 1000 + n;
        call[MEMORY_BYTES] = n * bytes_each;
        call[MEMORY_UNSIZED] = bytes_each || kind != KIND_ALLOC ? 0 : n;
        call[MEMORY_LAST_BYTES] = bytes_each;
        return call;
    }

    // Calls of three processes. A free has the name of the function that allocated the memory.
    static std::vector<CallDelta> calls()
    {
        using namespace golden;
        std::vector<CallDelta> all = {
            memory(trainer, KIND_ALLOC, "cuMemAlloc_v2", HOLDING_DEVICE, 40, 2'000'000),
            memory(trainer, KIND_FREE, "cuMemAlloc_v2", HOLDING_DEVICE, 11, 2'000'000),
            memory(trainer, KIND_ALLOC, "cuMemAlloc_v2", HOLDING_DEVICE, 3, 9'000'000'000, 2),
            memory(trainer, KIND_ALLOC, "cuMemAllocAsync", HOLDING_POOL, 500, 4096),
            memory(trainer, KIND_FREE, "cuMemAllocAsync", HOLDING_POOL, 400, 4096),
            memory(trainer, KIND_ALLOC, "cuMemAllocAsync", HOLDING_POOL, 2, 777),        // untracked: the table is full
            memory(trainer, KIND_ALLOC, "cuGraphAddMemAllocNode", HOLDING_POOL, 1, 640), // recorded during a capture
            memory(solver, KIND_ALLOC, "cuMemCreate", HOLDING_VMM, 2, 2 << 20),
            memory(solver, KIND_ALLOC, "cuMemAddressReserve", HOLDING_RESERVED, 1, 1 << 30),
            memory(solver, KIND_ALLOC, "cuArrayCreate_v2", HOLDING_ARRAY, 1, 65'536),
            memory(solver, KIND_ALLOC, "cuMemAllocManaged", HOLDING_MANAGED, 5, 10'001),
            memory(solver, KIND_FREE, "cuMemFree_v2", HOLDING_NONE, 6, 0),
            memory(solver, KIND_ALLOC, "cuMemHostAlloc", HOLDING_PINNED, 1, 333, 999),
            memory(server, KIND_ALLOC, "cuMemHostAlloc", HOLDING_PINNED, 7, 100'000),
            memory(server, KIND_REGISTER_HOST, "cuMemHostRegister_v2", HOLDING_REGISTERED, 1, 8192),
            memory(server, KIND_ALLOC, "cuArrayCreate_v2", HOLDING_ARRAY, 1, 0),
            memory(server, KIND_ALLOC, "cuArrayCreate_v2", HOLDING_ARRAY, 1, 4096),
            memory(server, KIND_ALLOC, "cuMemAllocManaged", HOLDING_MANAGED, 1, 123),
            memory(server, KIND_TRIM, "cuMemPoolTrimTo", HOLDING_NONE, 4, 0),
            memory(server, KIND_ALLOC, "cudaMalloc", HOLDING_DEVICE, 9, 300'000),
            memory(server, KIND_FREE, "cudaMalloc", HOLDING_DEVICE, 2, 300'000),
            memory(server, KIND_ALLOC, "cudaMalloc", HOLDING_DEVICE, 1, 5'000'000'000, 2),
        };
        all[5].key.flags = CALL_UNTRACKED;
        all[6].key.flags = CALL_RECORDED;
        all[14].key.kind = KIND_ALLOC; // registrations are counted as allocations
        return all;
    }

    static void print(Output& output, const Options& options, const Settings& settings,
                      const std::vector<CallDelta>& calls)
    {
        golden::TestProcesses processes;
        AllocationGroups groups(settings, processes);
        Holdings holdings;
        holdings.distinguish(settings.size, settings.view.device);
        for (const CallDelta& call : calls) {
            holdings.add(call);
            groups.add(call);
        }
        if (!settings.histogram() && !options.failed_only) {
            // A context of the solver is destroyed, and with it an array and managed memory.
            holding_record ended{};
            ended.type = RECORD_CONTEXT_ENDED;
            ended.context = 7;
            ended.key.image = golden::solver;
            holdings.learn(ended);
            holdings.apply_ended_contexts();
            groups.add_held(holdings, {});
            for (auto& [key, group] : groups.groups())
                if (group.who.images.size() == 1) {
                    group.peak_bytes = 1'000'000'000 + group.who.images.begin()->pid;
                    if (!settings.nvml_library.empty())
                        group.nvml_bytes = 300'000'000 + group.allocated_bytes;
                }
        }
        const gpualloc::Context context{
            {options, settings, processes, 2.0, golden::all_probes(), golden::frames_of(settings)},
            !settings.nvml_library.empty()};
        print_groups(output, groups, context, golden::wall_ns);
    }
};

} // namespace

TEST_CASE("gpualloc output matches the golden file", "[golden]")
{
    golden::check<GpuAlloc>();
}
