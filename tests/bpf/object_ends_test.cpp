// SPDX-License-Identifier: Apache-2.0
// Ends of streams, events and contexts, whose handles are reused: a new object must not inherit the capture of an old
// one.
#include "tests/bpf/compiled_calls.hpp"
#include "tests/bpf/fake_run.hpp"
#include "tests/bpf/written_calls.hpp"
#include "tests/unit/attach/bpf_here.hpp"

#include <catch2/catch_test_macros.hpp>
#include <utility>

using namespace gpusnoop;

namespace {

using Counts = std::pair<int, int>; // launches that were captured, and executed

Counts counts(FakeRun& run)
{
    Counts all;
    for (const json& row : run.report()) {
        all.first += row["captured"].get<int>();
        all.second += row["launches"].get<int>();
    }
    return all;
}

} // namespace

TEST_CASE("launches into reused streams count as captured only in a capture", "[bpf][cudalaunch]")
{
    need_bpf();
    struct Case {
        const char* what;
        std::string_view calls;
        Counts want;
    };
    constexpr Case cases[] = {
        {"a stream is destroyed",
         "cuStreamBeginCapture_v2 stream=1; 3* cuLaunchKernel stream=1; cuStreamDestroy_v2 stream=1;"
         "5* cuLaunchKernel stream=1",
         {3, 5}},
        {"its destruction fails",
         "cuStreamBeginCapture_v2 stream=1; 3* cuLaunchKernel stream=1; cuStreamDestroy_v2 stream=1 =1;"
         "5* cuLaunchKernel stream=1; cuStreamEndCapture stream=1 out=0; 7* cuLaunchKernel stream=1",
         {8, 7}},
        {"another context is destroyed",
         "cuStreamBeginCapture_v2 stream=1; 3* cuLaunchKernel stream=1; cuCtxCreate_v2 out=c1 device=0;"
         "cuCtxDestroy_v2 handle=c1; 5* cuLaunchKernel stream=1; cuStreamEndCapture stream=1 out=0;"
         "7* cuLaunchKernel stream=1",
         {8, 7}},
        {"the stream's context has ended, and a new stream has its handle",
         "cuStreamBeginCapture_v2 stream=1; 3* cuLaunchKernel stream=1; cuStreamCreate out=1;"
         "5* cuLaunchKernel stream=1",
         {3, 5}},
        {"a stream that joined a capture is destroyed",
         "cuStreamBeginCapture_v2 stream=1; cuEventRecord handle=e stream=1; cuStreamWaitEvent handle=e stream=2;"
         "2* cuLaunchKernel stream=2; cuStreamDestroy_v2 stream=2; 7* cuLaunchKernel stream=2;"
         "cuStreamEndCapture stream=1 out=0",
         {2, 7}},
        {"an event is destroyed",
         "cuStreamBeginCapture_v2 stream=1; cuEventRecord handle=e stream=1; cuEventDestroy_v2 handle=e;"
         "cuStreamWaitEvent handle=e stream=2; 7* cuLaunchKernel stream=2; 3* cuLaunchKernel stream=1;"
         "cuStreamEndCapture stream=1 out=0",
         {3, 7}},
        {"HIP: a stream is destroyed",
         "hipStreamBeginCapture stream=1; 3* hipModuleLaunchKernel stream=1; hipStreamDestroy stream=1;"
         "5* hipModuleLaunchKernel stream=1",
         {3, 5}},
        {"HIP: an event is destroyed",
         "hipStreamBeginCapture stream=1; hipEventRecord handle=e stream=1; hipEventDestroy handle=e;"
         "hipStreamWaitEvent handle=e stream=2; 5* hipModuleLaunchKernel stream=2; hipStreamEndCapture stream=1 out=0",
         {0, 5}},
    };
    FakeRun run("cudalaunch --by pid");
    for (int i = 0; i < 2; i++)
        for (const Case& each : cases) {
            INFO(each.what);
            make_calls(run, each.calls);
            CHECK(counts(run) == each.want);
        }

    // each function, as a compiler calls it
    for (const CallSet& set : {stream_calls, event_calls})
        for (CompiledCall& call : compiled_calls(run, set)) {
            INFO(call.probe.symbol);
            const std::string library = call.probe.library == Library::hip ? "hip" : "cu";
            const std::string launch = (library == "hip" ? "hipModuleLaunchKernel" : "cuLaunchKernel");
            const bool is_event = event_calls.has(call.probe.row);
            const int kind = call.probe.row.kind;
            if (call.passes(ARG_OUT))
                call.pass(ARG_OUT, reinterpret_cast<uint64_t>(run.memory({1})));
            if (call.passes(ARG_STREAM))
                call.pass(ARG_STREAM, kind == KIND_EVENT_WAIT ? 2 : 1);
            if (call.passes(ARG_HANDLE))
                call.pass(ARG_HANDLE, 0xe);
            make_calls(run, library + "StreamBeginCapture stream=1");
            if (is_event && kind != KIND_EVENT_RECORD)
                make_calls(run, library + "EventRecord handle=e stream=1");
            if (!is_event) { // first in vain
                run.call(call.probe, *call.call, 1);
                make_calls(run, launch + " stream=1");
                CHECK(counts(run) == Counts{1, 0});
            }
            run.call(call.probe, *call.call);
            if (is_event && kind != KIND_EVENT_WAIT)
                make_calls(run, library + "StreamWaitEvent handle=e stream=2");
            make_calls(run, launch + (is_event ? " stream=2" : " stream=1"));
            const bool ends = !is_event || kind == KIND_EVENT_DESTROY;
            CHECK(counts(run) == (ends ? Counts{0, 1} : Counts{1, 0}));
            make_calls(run, library + "StreamEndCapture stream=1 out=0");
        }
    CHECK(run.losses().empty());
}
