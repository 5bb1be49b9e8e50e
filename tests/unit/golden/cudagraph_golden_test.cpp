// SPDX-License-Identifier: Apache-2.0
#include "base/fd.hpp"
#include "golden.hpp"
#include "tools/cudagraph/columns.hpp"

#include <bpf/bpf.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

// A BPF map of live graphs or executable graphs, as the BPF programs would fill it.
struct Table {
    Fd fd;

    template<class Value>
    explicit Table(Value value, std::initializer_list<std::pair<image, uint64_t>> handles)
        : fd(bpf_map_create(BPF_MAP_TYPE_HASH, "golden", 16, sizeof(Value), 16, nullptr))
    {
        for (const auto& [of, handle] : handles) {
            const struct {
                image of;
                uint64_t handle;
            } key{of, handle};
            value.number = handle & 0xff;
            if constexpr (requires { value.handle; })
                value.handle = handle;
            REQUIRE(bpf_map_update_elem(fd.get(), &key, &value, BPF_ANY) == 0);
        }
    }
};

graph_exec an_exec()
{
    graph_exec exec{};
    exec.born_ns = 1'000'000'000;
    exec.instantiate_ns = 1'234'567;
    exec.graph = 0x7f00aa00;
    exec.nodes.count[NODE_KERNEL] = 48;
    exec.nodes.count[NODE_COPY] = 3;
    exec.nodes.count[NODE_SET] = 2;
    exec.nodes.count[NODE_HOST] = 1;
    return exec;
}

graph_exec an_old_exec()
{
    graph_exec exec{};
    exec.nodes.unknown = 1;
    return exec;
}

struct CudaGraph : golden::TestedTool {
    static constexpr const char* name = "cudagraph";
    static constexpr const char* sort = "launches";
    using Settings = cudagraph::Settings;
    static constexpr auto validate_options = cudagraph::validate_options;

    static constexpr const char* modes[] = {
        "--by namespace",
        "-T -X -s errors",
        "-x",
        "-U -r 1",
        "--api both --by graph,stream,device,api,pid,comm,thread,container,pod,namespace,cgroup --columns "
        "+KERNELS,+COPIES,+SETS,+HOST,+LAT_p50(us),+INST(us),+REASON,+AGE(s)",
        "--summary",
        "--summary --columns +CAPTURES,+INSTANT,+LAUNCHES,+DIRECT",
        "-H launch -L -N --by graph",
        "-H launch -x",
        "-H instantiate -P -m",
        "-H nodes"};
    static constexpr const char* full_table = "--by pid";
    static constexpr const char* by = "stream device api";
    static constexpr const char* sums = "launches kernels_launched unknown_launches captured captures failed_captures "
                                        "capture_ns instantiates instantiate_total_ns updates failed_updates uploads "
                                        "parameter_sets destroyed errors";

    static bool parse_option(Settings& s, std::string_view word, std::istream&)
    {
        s.summary |= word == "--summary";
        return word == "--summary";
    }
    static golden::Measures measures(const Settings& s, const Options& o)
    {
        return {s.latency || s.histogram(), s.latency || o.failed_only || s.summary};
    }

    static CallDelta graph_calls(const image& who, probe_kind kind, std::string_view symbol, uint64_t exec, uint64_t n,
                                 uint64_t ns_each, int result = 0)
    {
        CallDelta call = golden::calls_of(who, kind, symbol, n, ns_each);
        call.key.subject = exec;
        call.key.result = result;
        call.key.graph.reason = result ? 8 : 0;
        call.key.stream = exec ? 0x10 : 0;
        if (kind == KIND_GRAPH_LAUNCH && !result)
            call[GRAPH_KERNELS] = n * 48;
        if (kind == KIND_GRAPH_INSTANTIATE || kind == KIND_CAPTURE_END)
            call[GRAPH_SETUP_NS] = n * ns_each;
        return call;
    }

    static std::vector<CallDelta> calls()
    {
        using namespace golden;
        std::vector<CallDelta> all = {
            graph_calls(trainer, KIND_GRAPH_LAUNCH, "cuGraphLaunch", 1, 5000, 21'000),
            graph_calls(trainer, KIND_GRAPH_LAUNCH, "cuGraphLaunch", 1, 3, 2'000, 700),
            graph_calls(trainer, KIND_GRAPH_LAUNCH, "cuGraphLaunch", 2, 12, 33'000),
            graph_calls(trainer, KIND_CAPTURE_END, "cuStreamEndCapture", 0, 4, 50'000'000),
            graph_calls(trainer, KIND_CAPTURE_END, "cuStreamEndCapture", 0, 1, 1'000'000, 901),
            graph_calls(trainer, KIND_GRAPH_INSTANTIATE, "cuGraphInstantiateWithFlags", 1, 2, 20'000'000),
            graph_calls(trainer, KIND_GRAPH_UPDATE, "cuGraphExecUpdate_v2", 1, 17, 400'000),
            graph_calls(trainer, KIND_GRAPH_UPDATE, "cuGraphExecUpdate_v2", 2, 2, 300'000, 910),
            graph_calls(trainer, KIND_GRAPH_SET, "cuGraphExecKernelNodeSetParams_v2", 2, 29, 5'000),
            graph_calls(solver, KIND_GRAPH_LAUNCH, "cuGraphLaunch", 3, 7, 19'000), // graph instantiated before tracing
            graph_calls(solver, KIND_GRAPH_UPLOAD, "cuGraphUpload", 3, 5, 40'000),
            graph_calls(solver, KIND_LAUNCH, "cuLaunchKernel", 0, 36, 4'000),
            graph_calls(server, KIND_GRAPH_LAUNCH, "cuGraphLaunch", 4, 2, 9'000), // recorded during a capture
            graph_calls(server, KIND_EXEC_DESTROY, "cuGraphExecDestroy", 4, 1, 3'000),
        };
        all[9][GRAPH_KERNELS] = 0;
        all[9][GRAPH_UNKNOWN] = 7;
        all[12].key.flags = CALL_RECORDED;
        all[12][GRAPH_KERNELS] = 0;
        return all;
    }

    static void print(Output& output, const Options& options, const Settings& settings,
                      const std::vector<CallDelta>& calls)
    {
        using namespace golden;
        const Table made(an_exec(), {{trainer, 0x7f0000001001}, {trainer, 0x7f0000001002}}),
            graphs(graph{}, {{trainer, 0x7f00aa00}, {trainer, 0x7f00bb00}, {solver, 0x7f00aa00}});
        Execs execs(made.fd.get(), graphs.fd.get());
        execs.refresh();
        for (const auto& [of, exec, number] :
             {std::tuple(solver, an_old_exec(), 3U), std::tuple(server, an_exec(), 4U)}) {
            exec_record record{};
            record.image = of;
            record.exec = exec;
            record.exec.number = number;
            record.exec.handle = 0x7f0000002000 + number;
            execs.ended(record);
        }
        TestProcesses processes;
        GraphGroups groups(settings, processes, &execs);
        for (const CallDelta& call : calls)
            if (settings.summary || call.key.kind != KIND_LAUNCH) // only the summary counts direct launches
                groups.add(call);
        const cudagraph::Context context{
            {options, settings, processes, 2.0, all_probes(), golden::frames_of(settings)}, 31'000'000'000, execs};
        print_groups(output, groups, context, golden::wall_ns);
    }
};

} // namespace

TEST_CASE("cudagraph output matches the golden file", "[golden]")
{
    if (geteuid() != 0)
        SKIP("creating BPF maps needs root");
    golden::check<CudaGraph>();
}
