// SPDX-License-Identifier: Apache-2.0
#include "bpf/shared/histogram.h"
#include "bpf/shared/names.h"
#include "golden.hpp"
#include "tools/cudalaunch/columns.hpp"

#include <cstring>

using namespace gpusnoop;

namespace {

struct CudaLaunch : golden::TestedTool {
    static constexpr const char* name = "cudalaunch";
    static constexpr const char* sort = "launches";
    static constexpr const char* rate = "launches_per_second";
    static constexpr const char* rate_of = "launches graph_launches host_functions";
    using Settings = cudalaunch::Settings;
    static constexpr auto validate_options = cudalaunch::validate_options;

    static constexpr const char* modes[] = {
        "-l --by device --graphs expand",
        "-T --graphs expand",
        "-x --api both",
        "-l -X -s ERRORS -r 3 --graphs count --names base",
        "-U --api runtime",
        "-l --api both --names full --by kernel,pid,comm,thread,stream,device,api,container,pod,namespace,cgroup",
        "--graphs expand -s launches_per_second --columns +ERRORS,-GRID -r 3",
        "-H latency -L",
        "-H grid --by kernel,stream,device",
        "-H block -x",
        "-H gap -P -m"};
    static constexpr const char* full_table = "-l --by pid,kernel -r 0";
    static constexpr const char* by = "stream device api";
    static constexpr const char* sums = "launches captured graph_launches graph_kernels graph_launches_unknown "
                                        "host_functions errors latency_total_ns";

    static bool parse_option(Settings& s, std::string_view word, std::istream& more)
    {
        if (word == "--names")
            return static_cast<bool>(more >> s.names.form);
        return word == "--graphs" && more >> s.graphs;
    }
    static golden::Measures measures(const Settings& s, const Options& o)
    {
        return {s.latency || s.histogram_of == cudalaunch::Measure::gap, s.latency || o.failed_only};
    }

    static CallDelta launches(const image& who, std::string_view symbol, uint64_t handle, uint64_t n, uint64_t ns_each,
                              launch_shape shape, int result = 0)
    {
        CallDelta call = golden::calls_of(who, KIND_LAUNCH, symbol, n, ns_each);
        auto bucket = [](const __u32(&of)[3]) {
            return static_cast<uint16_t>(histogram_bucket(uint64_t{of[0]} * of[1] * of[2]));
        };
        call.key.subject = handle;
        call.key.result = result;
        call.key.stream = handle & 0xf0;
        call.key.launch = {bucket(shape.grid), bucket(shape.block)};
        call.set_shape(shape);
        call[CALL_LAST] = n;
        return call;
    }

    static CallDelta of_graphs(const image& who, uint64_t n, uint64_t ns_each, uint64_t kernels, uint64_t unknown)
    {
        CallDelta call = golden::calls_of(who, KIND_GRAPH_LAUNCH, "cuGraphLaunch", n, ns_each);
        call.key.launch = {BUCKET_NONE, BUCKET_NONE};
        call.key.subject = 0x5500;
        call[GRAPH_KERNELS] = kernels;
        call[GRAPH_UNKNOWN] = unknown;
        return call;
    }

    static std::vector<CallDelta> calls()
    {
        using namespace golden;
        const launch_shape small{{1, 1, 1}, {32, 1, 1}, 0}, wide{{4096, 3, 1}, {256, 1, 1}, 0},
            large{{65535, 16, 2}, {16, 16, 4}, 49152};
        std::vector<CallDelta> all = {
            launches(trainer, "cuLaunchKernel", 0x1010, 123'456, 4'200, wide),
            launches(trainer, "cuLaunchKernel", 0x1010, 99, 38'000, large),
            launches(trainer, "cuLaunchKernel", 0x1020, 53, 5'100, small),
            launches(solver, "cuLaunchKernelEx", 0x1010, 7, 6'000, wide, 719),
            launches(solver, "cuLaunchKernel", 0x1030, 29, 900'000, large),
            launches(server, "cuLaunchKernel", 0x1040, 17, 3'300, small), // a kernel without a name
            launches(server, "cuLaunchKernel", 0x1020, 11, 3'000, small), // recorded during a capture
            launches(server, "cudaLaunchKernel", 0x1020, 13, 7'700, small),
            launches(server, "cudaLaunchKernel", 0x1020, 3, 1'100, small, 98),
            of_graphs(trainer, 1000, 21'000, 480'000, 0),
            of_graphs(server, 5, 19'000, 6, 2),
            calls_of(solver, KIND_HOST_FUNC, "cuLaunchHostFunc", 19, 2'000),
        };
        all[6].key.flags = CALL_RECORDED;
        all.back().key.subject = 0x9000;
        all.back().key.launch = {BUCKET_NONE, BUCKET_NONE};
        return all;
    }

    static void learn(KernelNames& names, const image& who, uint64_t handle, const char* name, name_source source)
    {
        name_record record{};
        record.source = source;
        record.image = who;
        record.handle = handle;
        record.length = static_cast<int>(strlen(name)) + 1;
        record.capacity = 512;
        std::vector<char> bytes(sizeof(record) + strlen(name) + 1);
        memcpy(bytes.data(), &record, sizeof(record));
        memcpy(bytes.data() + sizeof(record), name, strlen(name));
        names.learn(*reinterpret_cast<const name_record*>(bytes.data()), bytes.size());
    }

    static void print(Output& output, const Options& options, const Settings& settings,
                      const std::vector<CallDelta>& calls)
    {
        using namespace golden;
        TestProcesses processes;
        KernelNames names("");
        for (const image& who : {trainer, solver, server}) {
            learn(names, who, 0x1010, "_Z6vecaddPKfS0_Pfi", NAME_LOOKUP);
            learn(names, who, 0x1020,
                  "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
                  NAME_REGISTERED);
        }
        learn(names, solver, 0x1030, "solve_rows", NAME_LOOKUP);
        learn(names, solver, 0x9000, "_Z8finishedPv", NAME_REGISTERED);
        LaunchGroups groups(settings, names, processes);
        for (const CallDelta& call : calls)
            groups.add(call);
        const cudalaunch::Context context{
            {options, settings, processes, 2.0, all_probes(), golden::frames_of(settings)}};
        print_groups(output, groups, context, golden::wall_ns);
    }
};

} // namespace

TEST_CASE("cudalaunch output matches the golden file", "[golden]")
{
    golden::check<CudaLaunch>();
}
