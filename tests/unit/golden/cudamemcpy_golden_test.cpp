// SPDX-License-Identifier: Apache-2.0
#include "bpf/shared/histogram.h"
#include "golden.hpp"
#include "tools/cudamemcpy/columns.hpp"

using namespace gpusnoop;

namespace {

struct CudaMemcpy : golden::TestedTool {
    static constexpr const char* name = "cudamemcpy";
    static constexpr const char* sort = "bytes";
    using Settings = cudamemcpy::Settings;
    static constexpr auto validate_options = cudamemcpy::validate_options;

    static constexpr const char* modes[] = {
        "--by pod,form",
        "-T -r 3",
        "-x --api both",
        "-l -X -s copies -r 3",
        "-U -l --by memory --api runtime",
        "-l --api both --by kind,memory,form,api,pid,comm,thread,stream,device,container,pod,namespace,cgroup",
        "--columns +CAPTURED,-PID -s AVERAGE -r 3",
        "-H size --by memory,form",
        "-H latency -L",
        "-H rate",
        "-H size -P -x"};
    static constexpr const char* full_table = "-l --by pid,kind,memory";
    static constexpr const char* by = "kind memory form api stream device";
    static constexpr const char* sums = "copies calls captured errors bytes failed_bytes unsized synchronous small "
                                        "latency_total_ns";

    static golden::Measures measures(const Settings& s, const Options& o)
    {
        return {s.latency, s.latency || o.failed_only};
    }

    struct Copy {
        direction way;
        memory from, to;
        uint64_t bytes; // bytes per copy; 0: unknown
    };

    static CallDelta copies(const image& who, std::string_view symbol, Copy copy, uint64_t n, uint64_t ns_each,
                            int result = 0)
    {
        CallDelta call = golden::calls_of(who, KIND_COPY, symbol, n, ns_each);
        const Probe& probe = golden::all_probes()[call.key.function - 1U];
        call.key.flags = probe.row.asynchronous ? CALL_ASYNCHRONOUS : 0;
        call.key.copy = {copy.bytes ? static_cast<uint16_t>(histogram_bucket(copy.bytes)) : uint16_t{BUCKET_NONE},
                         static_cast<uint8_t>(copy.way), copy_memory(copy.from, copy.to)};
        call.key.result = result;
        call.key.stream = probe.row.asynchronous ? 0x7f0000001000 : 0;
        call[COPY_BYTES] = n * copy.bytes;
        call[COPY_SMALL] = copy.bytes && copy.bytes < SMALL_COPY ? n : 0;
        call[COPY_UNSIZED] = copy.bytes ? 0 : n;
        return call;
    }

    static std::vector<CallDelta> calls()
    {
        using namespace golden;
        const Copy up{DIRECTION_H2D, MEMORY_PAGEABLE, MEMORY_DEVICE, 1 << 20},
            pinned{DIRECTION_H2D, MEMORY_PINNED, MEMORY_DEVICE, 1009},
            down{DIRECTION_D2H, MEMORY_DEVICE, MEMORY_PAGEABLE, 70'001},
            across{DIRECTION_P2P, MEMORY_DEVICE, MEMORY_DEVICE, 1 << 30},
            zeros{DIRECTION_SET, MEMORY_UNKNOWN, MEMORY_MANAGED, 4096},
            unsized{DIRECTION_UNKNOWN, MEMORY_UNKNOWN, MEMORY_ARRAY, 0};
        std::vector<CallDelta> all = {
            copies(trainer, "cuMemcpyHtoD_v2", up, 53, 310'000),
            copies(trainer, "cuMemcpyHtoDAsync_v2", pinned, 100'001, 3'100),
            copies(trainer, "cuMemcpyHtoDAsync_v2", pinned, 17, 3'000), // recorded during a capture
            copies(trainer, "cuMemcpyDtoH_v2", down, 7, 2'000, 719),
            copies(solver, "cuMemcpyPeerAsync", across, 3, 9'000),
            copies(solver, "cuMemsetD8_v2", zeros, 29, 1'500),
            copies(server, "cuMemcpyDtoH_v2", down, 101, 40'000),
            copies(server, "cuMemcpyBatchAsync_v2", pinned, 40, 800), // ten calls of four copies
            copies(server, "cuMemcpyAtoA_v2", unsized, 5, 7'000),
            copies(server, "cudaMemcpy", up, 11, 320'000),
            copies(server, "cudaMemcpy", up, 2, 900, 1),
        };
        all[2].key.flags |= CALL_RECORDED;
        all[7][COPY_CONTINUED] = 30;
        return all;
    }

    static void print(Output& output, const Options& options, const Settings& settings,
                      const std::vector<CallDelta>& calls)
    {
        golden::TestProcesses processes;
        CopyGroups groups(settings, processes);
        for (CallDelta call : calls) {
            // For -H rate, the BPF programs store the MB/s of synchronous copies in place of their duration.
            if (settings.histogram_of == cudamemcpy::Measure::rate) {
                const bool timed = !(call.key.flags & CALL_ASYNCHRONOUS) && !call.key.result && call[COPY_BYTES];
                call.key.duration =
                    timed ? static_cast<uint16_t>(histogram_bucket(call[COPY_BYTES] * 1000 / call[CALL_TOTAL_NS]))
                          : uint16_t{BUCKET_NONE};
            }
            groups.add(call);
        }
        const cudamemcpy::Context context{
            {options, settings, processes, 2.0, golden::all_probes(), golden::frames_of(settings)}};
        print_groups(output, groups, context, golden::wall_ns);
    }
};

} // namespace

TEST_CASE("cudamemcpy output matches the golden file", "[golden]")
{
    golden::check<CudaMemcpy>();
}
