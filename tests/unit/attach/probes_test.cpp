// SPDX-License-Identifier: Apache-2.0
// Consistency of the probe table. The tests in abi/ check where its rows read arguments.
#include "tests/unit/attach/all_probes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <map>
#include <set>

using namespace gpusnoop;

namespace {

bool in_register(const operand& op)
{
    return op.word < WORD_BLOCK || !operand_present(op.word);
}

// As an int, because Catch2 prints it better than a character type.
int version(std::string_view soname)
{
    return runtime_of(soname);
}

bool is_launch(uint8_t kind)
{
    return kind >= KIND_LAUNCH && kind <= KIND_HOST_FUNC;
}

bool is_copy(uint8_t kind)
{
    return kind == KIND_COPY || kind == KIND_COPY_BATCH || kind == KIND_COPY_BATCH_3D;
}

// Kinds whose arguments are read by read_argument() of bpf/base/probe.bpf.h.
bool reads_blocks(uint8_t kind)
{
    return is_copy(kind) || kind == KIND_ALLOC || kind == KIND_PHYSICAL_NEW || kind == KIND_GRAPH_NODE ||
           kind == KIND_COLLECTIVE || kind == KIND_MESSAGE;
}

bool has(const Probe& probe, int which)
{
    return operand_present(probe.row.args[which].word);
}

// Calls check(probe, row, named) for each probe. named(text): whether the symbol contains the text.
void each_probe(auto check)
{
    for (const Probe& probe : all_probes()) {
        INFO(probe.symbol);
        check(probe, probe.row, [&](const char* text) { return probe.symbol.find(text) != std::string::npos; });
    }
}

} // namespace

TEST_CASE("the table fits into the BPF map of rows")
{
    // No tool probes all functions of more than one CUDA layer.
    const size_t hip = probes(Library::hip, all_kinds()).size();
    CHECK(hip + probes(Library::driver, all_kinds()).size() <= PROBE_ROWS_MAX);
    CHECK(hip + probes(Library::runtime, all_kinds()).size() <= PROBE_ROWS_MAX);
    CHECK(probes(Library::nccl, all_kinds()).size() <= PROBE_ROWS_MAX);
    static_assert(WORD_BLOCK + LAUNCH_WORDS_MAX == WORDS);
}

TEST_CASE("no symbol is probed twice")
{
    std::map<std::pair<Library, std::string>, uint8_t> seen; // bit set of runtime versions with a row for the symbol
    for (const Probe& probe : all_probes()) {
        INFO(probe.symbol);
        uint8_t in = probe.runtimes == any_runtime ? 0xff : probe.runtimes;
        uint8_t& so_far = seen[{probe.library, probe.symbol}];
        CHECK((so_far & in) == 0);
        so_far |= in;
        // __cudaLaunchKernel jumps to cudaLaunchKernel, so with probes on both, launches would count twice.
        CHECK(!probe.symbol.starts_with("__cudaLaunchKernel"));
    }
}

TEST_CASE("only rows of the requested kinds are returned")
{
    const probe_kind kinds[] = {KIND_HOST_FUNC, KIND_CONTEXT_POP};
    std::vector<std::string> symbols;
    for (const Probe& probe : probes(Library::driver, kinds))
        symbols.push_back(probe.symbol);
    CHECK(symbols == std::vector<std::string>{"cuLaunchHostFunc_v2", "cuLaunchHostFunc_v2_ptsz", "cuLaunchHostFunc",
                                              "cuLaunchHostFunc_ptsz", "cuStreamAddCallback",
                                              "cuStreamAddCallback_ptsz", "cuCtxPopCurrent", "cuCtxPopCurrent_v2"});
    CHECK(probes(Library::runtime, kinds).size() == 4);
    CHECK(probes(Library::driver, {}).empty());
}

TEST_CASE("rows have the right library and kind")
{
    each_probe([](const Probe& probe, const probe_row&, const auto& named) {
        const bool hip = probe.library == Library::hip;
        CHECK(probe.row.layer == (probe.library == Library::runtime ? LAYER_RUNTIME : hip ? LAYER_HIP : LAYER_DRIVER));
        CHECK((library_of(probe.row.layer) == probe.library || probe.library == Library::nccl));
        CHECK(hip == named("hip"));
        CHECK((probe.row.kind > KIND_NONE && probe.row.kind < KINDS));
        CHECK((probe.library == Library::runtime || hip || probe.runtimes == any_runtime));
        bool runtime_name = probe.symbol.starts_with("cuda") || probe.symbol.starts_with("__cuda");
        CHECK(runtime_name == (probe.library == Library::runtime));
        CHECK(probe.symbol.starts_with("nccl") == (probe.library == Library::nccl));
    });
}

TEST_CASE("operands are within the words of a call")
{
    each_probe([](const Probe&, const probe_row& row, const auto&) {
        CHECK(row.block_words <= (is_launch(row.kind) ? LAUNCH_WORDS_MAX : BLOCK_WORDS_MAX));
        CHECK((row.block_base == BLOCK_NONE) == (row.block_words == 0));
        CHECK(row.block_base <= BLOCK_REGISTER + ARGUMENT_REGISTERS - 1);
        for (const operand& op : row.args) {
            CHECK((in_register(op) || op.word < WORD_BLOCK + row.block_words));
            CHECK((op.part == PART_WHOLE || op.part == PART_LOW || op.part == PART_HIGH));
        }
    });
}

// register_argument() of bpf/base/probe.bpf.h cannot read arguments in memory, or in the upper half of a register.
TEST_CASE("all arguments of kinds whose programs read only registers are in registers")
{
    each_probe([](const Probe& probe, const probe_row&, const auto&) {
        if (reads_blocks(probe.row.kind))
            return;
        for (int which = 0; which < ARGUMENTS; which++) {
            const operand& op = probe.row.args[which];
            if (!is_launch(probe.row.kind) || which == ARG_COUNT ||
                (which == ARG_FUNC && probe.row.kind != KIND_LAUNCH_LIST))
                CHECK((in_register(op) && op.part != PART_HIGH));
        }
    });
}

TEST_CASE("variants for per-thread streams have their arguments in the same places as the base function")
{
    std::map<std::pair<std::string, uint8_t>, Probe> by_symbol;
    for (const Probe& probe : all_probes())
        by_symbol[{probe.symbol, probe.runtimes}] = probe;
    size_t variants = 0;
    for (const auto& [key, probe] : by_symbol) {
        INFO(probe.symbol);
        bool ptsz = probe.symbol.ends_with("_ptsz"), ptds = probe.symbol.ends_with("_ptds");
        bool spt = probe.symbol.ends_with("_spt");
        CHECK(bool(probe.row.per_thread_stream) == (ptsz || ptds || spt));
        if (!ptsz && !ptds && !spt)
            continue;
        variants++;
        auto base = by_symbol.find({probe.symbol.substr(0, probe.symbol.rfind('_')), probe.runtimes});
        REQUIRE(base != by_symbol.end());
        CHECK(base->second.library == probe.library);
        probe_row row = base->second.row;
        row.per_thread_stream = 1;
        CHECK(memcmp(&row, &probe.row, sizeof(row)) == 0);
        // Graph instantiation gets the stream in a structure, which tools do not read.
        CHECK((spt || (has(probe, ARG_STREAM) || probe.row.kind == KIND_GRAPH_INSTANTIATE) == ptsz));
    }
    CHECK(variants > 10);
}

TEST_CASE("rows of copies match their names")
{
    each_probe([](const Probe& probe, const probe_row& row, const auto& named) {
        const bool copies = is_copy(row.kind);
        CHECK((row.element_bytes == 1 || copies));
        CHECK(row.array_elements <= copies);
        CHECK((row.direction == DIRECTION_UNKNOWN || copies));
        if (!copies)
            return;
        const bool set = named("Memset"), prefetch = named("Prefetch");
        CHECK(has(probe, ARG_BYTES));
        CHECK(row.asynchronous == named("Async"));
        CHECK(row.asynchronous <= has(probe, ARG_STREAM));
        CHECK(row.element_bytes == (named("D16") || named("D2D16") ? 2 : named("D32") || named("D2D32") ? 4 : 1));
        CHECK((row.direction == DIRECTION_SET) == set);
        CHECK((row.direction == DIRECTION_PREFETCH) == prefetch);
        CHECK((row.direction == DIRECTION_P2P) == named("Peer"));
        CHECK((row.direction == DIRECTION_H2D) == (named("HtoD") || named("HtoA")));
        CHECK((row.direction == DIRECTION_D2H) == (named("DtoH") || named("AtoH")));
        CHECK((row.direction == DIRECTION_D2D) ==
              (!set && (named("DtoD") || named("DtoA") || named("AtoD") || named("AtoA"))));
        // Only in these calls may a size be given in array elements instead of bytes.
        const bool by_parameters = named("cudaMemcpy3D") || named("hipMemcpy3D");
        CHECK(bool(row.array_elements) == (by_parameters || row.kind == KIND_COPY_BATCH_3D));
        // The direction is known from the row, an argument, or both addresses.
        const bool from = has(probe, ARG_SOURCE) || has(probe, ARG_SOURCE_ARRAY);
        const bool to = has(probe, ARG_DESTINATION) || has(probe, ARG_DESTINATION_ARRAY);
        CHECK((row.direction != DIRECTION_UNKNOWN || has(probe, ARG_DIRECTION) || (from && to)));
        CHECK(!(from && (set || prefetch)));
        // If a call has alternative addresses, the row must also have the argument that selects one of them.
        CHECK(has(probe, ARG_SOURCE_HOST) <= has(probe, ARG_SOURCE_TYPE));
        CHECK(has(probe, ARG_DESTINATION_HOST) <= has(probe, ARG_DESTINATION_TYPE));
        CHECK((has(probe, ARG_HEIGHT) || !has(probe, ARG_DEPTH)));
        CHECK((row.kind == KIND_COPY || named("Batch") || named("3DWithAttributes")));
        CHECK((row.kind != KIND_COPY || !has(probe, ARG_COUNT)));
    });
}

TEST_CASE("rows of waits match their names")
{
    each_probe([](const Probe& probe, const probe_row& row, const auto& named) {
        CHECK((row.kind == KIND_WAIT || row.kind == KIND_FREE) >= (row.wait != WAIT_NONE));
        CHECK((row.kind != KIND_WAIT || row.wait != WAIT_NONE));
        // A free of addressable memory may have to wait, because the memory may be in use.
        CHECK((row.kind == KIND_FREE && row.memory != MEMORY_UNKNOWN) == (row.wait == WAIT_FREE));
        if (row.kind != KIND_WAIT)
            return;
        CHECK((row.wait == WAIT_POLL) == named("Query"));
        CHECK((row.wait == WAIT_VALUE) == named("WaitValue"));
        CHECK(bool(row.asynchronous) == named("WaitValue"));
        CHECK((row.wait == WAIT_CONTEXT) == (named("CtxSync") || named("DeviceSync") || named("ThreadSync")));
        CHECK((row.wait == WAIT_EVENT) == named("EventSync"));
        CHECK(has(probe, ARG_STREAM) == named("Stream"));
    });
}

TEST_CASE("rows of memory calls have a type and the arguments needed to track memory")
{
    each_probe([](const Probe& probe, const probe_row& row, const auto& named) {
        const bool allocates = row.kind == KIND_ALLOC || row.kind == KIND_REGISTER_HOST ||
                               row.kind == KIND_PHYSICAL_NEW || row.kind == KIND_MAP;
        const bool frees = row.kind == KIND_FREE || row.kind == KIND_UNMAP;
        CHECK((row.holding != HOLDING_NONE) == (allocates || frees || row.kind == KIND_TRIM));
        CHECK((row.memory == MEMORY_UNKNOWN || allocates || frees));
        switch (row.kind) {
        case KIND_ALLOC: {
            CHECK(has(probe, ARG_OUT));
            const bool has_no_size =
                named("IpcOpen") || named("Import") || named("MappedMipmapped") || named("PoolCreate");
            CHECK((has(probe, ARG_BYTES) || has(probe, ARG_PITCH)) == (!has_no_size || named("ImportExternal")));
            CHECK(has(probe, ARG_PITCH) == (named("Pitch") || named("Malloc3D") > named("3DArray")));
            // Each of these two arguments determines the size of an array's elements.
            CHECK((has(probe, ARG_FORMAT) || has(probe, ARG_CHANNEL_BITS)) ==
                  (row.holding == HOLDING_ARRAY && !has_no_size));
            CHECK(has(probe, ARG_FORMAT) == has(probe, ARG_CHANNELS));
            CHECK(has(probe, ARG_LEVELS) == (named("Mipmapped") && !has_no_size));
            CHECK((has(probe, ARG_STREAM) && row.asynchronous) == named("Async"));
            break;
        }
        case KIND_REGISTER_HOST:
        case KIND_MAP:
        case KIND_UNMAP:
            CHECK((has(probe, ARG_ADDRESS) && has(probe, ARG_BYTES)));
            break;
        case KIND_FREE:
            CHECK(has(probe, ARG_ADDRESS));
            CHECK((has(probe, ARG_STREAM) && row.asynchronous) == named("Async"));
            break;
        case KIND_PHYSICAL_NEW:
        case KIND_PHYSICAL_RETAIN:
            CHECK(has(probe, ARG_OUT));
            break;
        case KIND_PHYSICAL_FREE:
            CHECK(has(probe, ARG_HANDLE));
            break;
        case KIND_CONTEXT_DESTROY:
            CHECK(has(probe, ARG_HANDLE) + has(probe, ARG_DEVICE) == (probe.library != Library::hip));
            break;
        case KIND_CONTEXT_RELEASE:
            CHECK(has(probe, ARG_DEVICE));
            break;
        default:
            CHECK(!has(probe, ARG_ADDRESS));
        }
    });
}

TEST_CASE("every type of allocation has a free")
{
    std::set<std::pair<Library, uint8_t>> allocated, freed;
    for (const Probe& probe : all_probes()) {
        if (probe.row.kind == KIND_ALLOC || probe.row.kind == KIND_REGISTER_HOST || probe.row.kind == KIND_MAP)
            allocated.emplace(probe.library, probe.row.holding);
        else if (probe.row.kind == KIND_FREE || probe.row.kind == KIND_UNMAP)
            freed.emplace(probe.library, probe.row.holding);
    }
    freed.emplace(Library::driver, HOLDING_MANAGED); // freed by the calls for device memory
    freed.emplace(Library::runtime, HOLDING_MANAGED);
    freed.emplace(Library::runtime, HOLDING_MAPPED);
    freed.emplace(Library::hip, HOLDING_MANAGED);
    CHECK(allocated == freed);
}

TEST_CASE("the runtime's version is in its soname")
{
    CHECK(version("libcudart.so.11.0") == cudart11);
    CHECK(version("libcudart.so.11") == cudart11);
    CHECK(version("libcudart.so.12") == cudart12);
    CHECK(version("libcudart.so.13") == cudart13);
    for (const char* soname :
         {"", "libcudart.so", "libcudart.so.10.2", "libcudart.so.1", "libcuda.so.1", "libtorch_cuda.so",
          "libcublas.so.12", "libfoo.so.13", "libamdhip64.so", "libamdhip64.so.4"})
        CHECK(version(soname) == any_runtime);
    CHECK(version("libamdhip64.so.5") == hip5);
    CHECK(version("libamdhip64.so.6") == hip6);
    CHECK(version("libamdhip64.so.7") == hip6);
}

// Python wheels contain renamed copies of the library, with a hash in the file name and in the soname.
TEST_CASE("the runtime's version is in a wheel's soname")
{
    CHECK(version("libcudart-d0da41ae.so.11.0") == cudart11);
    CHECK(version("libcudart-9335f6a2.so.12.4.127") == cudart12);
    CHECK(version("libcudart-0123abcd.so.13.0.96") == cudart13);
}

TEST_CASE("a row for certain versions of the runtime applies only to these")
{
    Probe probe{.symbol = "f", .library = Library::runtime};
    for (auto runtime : {any_runtime, cudart11, cudart12, cudart13})
        CHECK(applies(probe, runtime));
    probe.runtimes = cudart12 | cudart13;
    CHECK(!applies(probe, any_runtime)); // the runtime's version is unknown, so the row might be wrong
    CHECK(!applies(probe, cudart11));
    CHECK(applies(probe, cudart12));
    CHECK(applies(probe, cudart13));
}

TEST_CASE("results have names")
{
    struct Names {
        int code;
        const char* driver;
        const char* runtime;
    };
    const Names results[] = {
        {0, "CUDA_SUCCESS", "cudaSuccess"},
        {1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue"},
        {2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"},
        {35, "error 35", "cudaErrorInsufficientDriver"},
        {100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice"},
        {400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle"},
        {600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress"},
        {719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure"},
        {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported"},
        {999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown"},
        {12345, "error 12345", "error 12345"},
        {-1, "error -1", "error -1"},
    };
    for (const Names& result : results) {
        CHECK(result_name(Library::driver, result.code) == result.driver);
        CHECK(result_name(Library::runtime, result.code) == result.runtime);
    }
    CHECK(result_name(Library::hip, 0) == "hipSuccess");
    CHECK(result_name(Library::hip, 2) == "hipErrorOutOfMemory");
    CHECK(result_name(Library::hip, 100) == "hipErrorNoDevice");
    CHECK(result_name(Library::hip, 1052) == "hipErrorRuntimeMemory");
    CHECK(result_name(Library::hip, 35) == "hipErrorInsufficientDriver");
}

// Names are found by binary search, so the tables must be sorted.
TEST_CASE("the tables of results are sorted")
{
    for (Library library : {Library::driver, Library::runtime, Library::hip}) {
        std::set<std::string> names;
        size_t known = 0;
        for (int code = 0; code < 1000; code++) {
            std::string name = result_name(library, code);
            if (name.starts_with("error "))
                continue;
            known++;
            CHECK(names.insert(name).second);
        }
        CHECK(known > 70);
    }
}

TEST_CASE("rows of graph calls have the node type and the graph arguments that their kind needs")
{
    each_probe([](const Probe& probe, const probe_row& row, const auto& named) {
        const bool node = row.kind == KIND_GRAPH_NODE;
        CHECK(node >= (row.node != NODE_UNSPECIFIED));
        CHECK(has(probe, ARG_NODE_TYPE) == named("GraphAddNode"));
        CHECK(has(probe, ARG_CHILD) == (named("GraphAddNode") || named("AddChildGraph")));
        if (node) {
            CHECK((row.node != NODE_UNSPECIFIED) != has(probe, ARG_CHILD));
            CHECK((row.node == NODE_KERNEL) == named("AddKernel"));
            CHECK((row.node == NODE_COPY) == named("AddMemcpy"));
            CHECK((row.node == NODE_SET) == named("AddMemset"));
            CHECK((row.node == NODE_HOST) == named("AddHost"));
        }
        const bool makes = row.kind == KIND_GRAPH_NEW || row.kind == KIND_GRAPH_INSTANTIATE;
        CHECK(makes <= has(probe, ARG_OUT));
        const bool of_graph = node || row.kind == KIND_GRAPH_DESTROY || row.kind == KIND_GRAPH_INSTANTIATE ||
                              row.kind == KIND_GRAPH_UPDATE || row.holding == HOLDING_GRAPH;
        CHECK((of_graph && !named("MemTrim")) <= has(probe, ARG_GRAPH));
        const bool of_exec = row.kind == KIND_GRAPH_LAUNCH || row.kind == KIND_GRAPH_UPLOAD ||
                             row.kind == KIND_GRAPH_UPDATE || row.kind == KIND_GRAPH_SET ||
                             row.kind == KIND_EXEC_DESTROY;
        CHECK(of_exec <= has(probe, ARG_FUNC));
    });
}
