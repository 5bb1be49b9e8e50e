// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"
#include "tools/cudasync/columns.hpp"

using namespace gpusnoop;

namespace {

struct CudaSync : golden::TestedTool {
    static constexpr const char* name = "cudasync";
    static constexpr const char* sort = "total_ns";
    using Settings = cudasync::Settings;
    static constexpr auto validate_options = cudasync::validate_options;

    static constexpr const char* modes[] = {
        "--by container",
        "-T -r 3",
        "-x --by api",
        "-X -s calls -r 3",
        "-U --api runtime",
        "--by wait",
        "--api both --by wait,pid,comm,thread,api,stream,device,container,pod,namespace,cgroup",
        "--columns +THREADS,+p50(us),+p95(us),-PID -s WALL% -r 5",
        "-H duration -L --by wait,api",
        "-H duration -P -m -x"};
    static constexpr const char* full_table = "--by thread,api,wait";
    static constexpr const char* by = "wait api stream device";
    static constexpr const char* sums = "calls not_ready errors waiting total_ns";

    static CallDelta waits(const image& who, wait what, std::string_view symbol, uint64_t n, uint64_t ns_each,
                           int result = 0, uint64_t stream = 0)
    {
        CallDelta call = golden::calls_of(who, KIND_WAIT, symbol, n, ns_each);
        call.key.wait.wait = static_cast<uint8_t>(what);
        call.key.result = result;
        call.key.stream = stream;
        return call;
    }

    static std::vector<CallDelta> calls()
    {
        using namespace golden;
        std::vector<CallDelta> all = {
            waits(trainer, WAIT_CONTEXT, "cuCtxSynchronize", 53, 12'345'678),
            waits(trainer, WAIT_STREAM, "cuStreamSynchronize", 4096, 23'000, 0, 0x7f0000001000),
            waits(trainer, WAIT_STREAM, "cuStreamSynchronize", 7, 1'900, 719, 0x7f0000002000),
            waits(solver, WAIT_POLL, "cuStreamQuery", 1'000'000, 210),
            waits(solver, WAIT_EVENT, "cuEventSynchronize", 3, 450'000'000),
            waits(server, WAIT_COPY, "cuMemcpyDtoH_v2", 101, 900'000),
            waits(server, WAIT_FREE, "cuMemFree_v2", 1, 70'000, 700),
            waits(server, WAIT_CONTEXT, "cudaDeviceSynchronize", 5, 3'000'000),
            waits(server, WAIT_CONTEXT, "cudaDeviceSynchronize", 2, 8'000, 35),
        };
        all[3].key.flags = CALL_NOT_READY;
        all[4].key.tid += 1; // another thread of the solver
        return all;
    }

    static void print(Output& output, const Options& options, const Settings& settings,
                      const std::vector<CallDelta>& calls)
    {
        golden::TestProcesses processes;
        WaitGroups groups(settings, processes);
        for (const CallDelta& call : calls)
            groups.add(call);
        if (!settings.histogram() && !options.failed_only && settings.driver) {
            // Three waits: one that began before the interval and is pending, one that returned after the interval, and
            // one that began before tracing.
            const call_key still = waits(golden::solver, WAIT_STREAM, "cuStreamSynchronize", 1, 1, 0, 0x10).key;
            groups.add(Waiting::Part{still, 5'250'000'000, 2'000'000'000, true});
            groups.add(Waiting::Part{waits(golden::trainer, WAIT_CONTEXT, "cuCtxSynchronize", 1, 1).key, 700'000'000,
                                     300'000'000, false});
            groups.add(Waiting::Part{.key = waits(golden::server, WAIT_EVENT, "cuEventSynchronize", 1, 1).key,
                                     .elapsed_ns = 4'000'000'000,
                                     .new_ns = 2'000'000'000,
                                     .waiting = true,
                                     .earlier = true});
        }
        const cudasync::Context context{
            {options, settings, processes, 2.0, golden::all_probes(), golden::frames_of(settings)}};
        print_groups(output, groups, context, golden::wall_ns);
    }
};

} // namespace

TEST_CASE("cudasync output matches the golden file", "[golden]")
{
    golden::check<CudaSync>();
}
