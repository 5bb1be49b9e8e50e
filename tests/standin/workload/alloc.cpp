// SPDX-License-Identifier: Apache-2.0
// The step "alloc", and creation and destruction of contexts.
#include "alloc.hpp"
#include "kernels.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace workload {
namespace {

void* touched(size_t bytes)
{
    void* memory = malloc(bytes);
    return memory ? memset(memory, 1, bytes) : nullptr;
}

// Allocates memory without an API: pages of a privately mapped file, each read once.
void* mapped_file(size_t bytes)
{
    char name[] = "/tmp/workload-XXXXXX";
    int fd = mkstemp(name);
    void* memory = fd < 0 || ftruncate(fd, static_cast<off_t>(bytes))
                       ? MAP_FAILED
                       : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        fail(std::string("cannot map ") + name);
    unlink(name);
    close(fd);
    for (size_t i = 0; i < bytes; i += 4096)
        static_cast<void>(static_cast<volatile char*>(memory)[i]);
    return memory;
}

Side side_of(const AllocRow& row, const AllocRequest& request)
{
    auto is = [&](const char* kind) { return !strcmp(row.kind, kind); };
    if (is("managed"))
        return Side::unknown;
    bool on_host = is("pinned") || is("registered") || request.location.type == standin::Location::host;
    return on_host ? Side::host : is("array") ? Side::array : Side::device;
}

// Physical memory on the host counts as pinned memory; memory allocated during a capture counts as graph memory.
standin::Holding holding_of(const AllocRow& row, const AllocRequest& request, bool recorded)
{
    using enum standin::Holding;
    bool host = row.holding == vmm && request.location.type == standin::Location::host;
    return recorded ? graph : host ? pinned : row.holding;
}

// Returns a file such as another process would get from cuMemExportToShareableHandle.
int file_of(const standin::Shared& shared)
{
    int fd = memfd_create("memory of another process", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, &shared, sizeof shared, 0) != sizeof shared)
        fail("cannot create a memory file");
    return fd;
}

// Finds the memory to import: this process's memory if from=NAME is given, else fictitious memory of another process.
void find_source(AllocRequest& request, const AllocRow& row, const Step& step)
{
    if (row.source == Source::none)
        return;
    ready_driver();
    if (row.source == Source::graph)
        request.graph = graph_for_memory();
    if (row.source == Source::external && !step.has("from"))
        wrong(step, "from=NAME is required: the external memory");
    if (step.has("from"))
        request.source = memory(step, "from", Side::device);
    if (step.has("from") && row.source != Source::external)
        request.bytes = request.source.bytes;
    request.shared.bytes = request.bytes;
    void* address = request.source.address;
    if (row.source == Source::ipc && address)
        setup("cuIpcGetMemHandle", &request.shared, address);
    if (row.source == Source::pool_pointer && address)
        setup("cuMemPoolExportPointer", &request.shared, address);
    if (row.source == Source::file && address)
        setup("cuMemExportToShareableHandle", &request.file, address, 1, 0ull);
    else if (row.source == Source::file)
        request.file = file_of(request.shared);
}

// Returns nullopt if the call failed.
std::optional<Memory> allocate(const AllocRow& row, const std::string& function, AllocRequest& request,
                               const Pace& pace)
{
    if (!is_runtime(function))
        ready_driver();
    if (registers(row))
        request.address = touched(request.bytes);
    Call call = call_of(function, "alloc");
    call.synchronous = !is_async(function);
    call.stream = is_async(function) ? reinterpret_cast<uintptr_t>(request.stream) : 0;
    bool recorded = is_async(function) && driver_is_capturing(request.stream);
    void* target = symbol(function);
    auto results = make_calls<Timed::yes>(pace, 1, [&] { return row.call(target, request); });
    call.data = data_of(holding_of(row, request, recorded), request.bytes);
    call.data->destination = row.kind;
    add_results(call, results, pace, row.nested);
    if (request.file >= 0)
        close(request.file);
    if (!results[0].count) {
        if (registers(row))
            free(request.address);
        return {};
    }
    Memory memory = {.kind = row.kind,
                     .side = side_of(row, request),
                     .address = request.address,
                     .bytes = request.bytes,
                     .holding = call.data->holding,
                     .free_by = row.free_by,
                     .owned = row.owned,
                     .place = place()};
    if (is_physical(row))
        map_physical(memory);
    return memory;
}

// Computes width, height and depth from BYTES; if BYTES is 0, computes BYTES from them.
void find_shape(AllocRequest& w, const AllocRow& row, const Step& step)
{
    size_t height = step.number("height", is_array(row) && !step.has("width") ? 0 : 1);
    size_t depth = step.number("depth", 0), rows = std::max<size_t>(height, 1) * std::max<size_t>(depth, 1);
    w.array.format = static_cast<unsigned>(step.number("format", 1));
    w.array.channels = static_cast<unsigned>(step.number("channels", 1));
    w.levels = static_cast<unsigned>(step.number("levels", 1));
    size_t element = is_array(row) ? standin::bytes_of_format(w.array.format) * w.array.channels : 1;
    if (!element)
        wrong(step, "unknown format");
    w.width = step.number("width", w.bytes / rows / element);
    w.height = rows;
    w.array.width = w.width;
    w.array.height = height;
    w.array.depth = depth;
    if (w.bytes && w.width * rows * element != w.bytes)
        wrong(step, "width x height x depth is not " + step.word(1));
    if (step.has("width"))
        w.bytes = w.width * rows * element;
    if (is_array(row))
        w.bytes = standin::bytes_of(w.array, w.levels);
}

// If the step has the option tag=, puts the tag into the ignored bits of the memory's address.
Memory tagged(Memory memory, const Step& step)
{
    if (step.has("tag") && !standin::ignored_bits)
        wrong(step, "tag needs a processor that ignores address bits");
    if (step.has("tag"))
        memory.address =
            reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(memory.address) | step.number("tag", 0) << 56);
    return memory;
}

} // namespace

const void* unreadable_page()
{
    static const void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page;
}

Memory allocate_default(Side side, size_t bytes)
{
    static const Step nothing;
    const AllocRow* row = find_alloc_row(side == Side::array ? "array"
                                         : runtime_major     ? "cudaMalloc"
                                                             : "cuMemAlloc_v2");
    AllocRequest request{.bytes = bytes, .width = bytes, .height = 1, .array = {bytes, 1, 0, 1, 1, 0}};
    auto memory = allocate(*row, row->function(), request, Pace(nothing));
    if (!memory)
        fail("cannot allocate memory for copies");
    return *memory;
}

// alloc NAME BYTES [fn=FUNCTION] and other options
void alloc(const Step& step)
{
    auto name = step.word(0);
    auto function = step.option("fn", runtime_major ? "cudaMalloc" : "cuMemAlloc_v2");
    AllocRequest request{.bytes = step.number(1)};
    if (function == "host" || function == "mmap") {
        void* address = function == "host" ? touched(request.bytes) : mapped_file(request.bytes);
        Memory memory{.kind = "host",
                      .side = Side::host,
                      .address = address,
                      .bytes = request.bytes,
                      .free_by = function == "host" ? "free" : "munmap"};
        return remember(name, tagged(memory, step));
    }
    const AllocRow* row = find_alloc_row(function);
    if (!row)
        wrong(step, function + " does not allocate memory");
    find_shape(request, *row, step);
    if (step.option("location", "device") == "host")
        request.location = {standin::Location::host, 0};
    else
        request.location.id = device();
    if (step.option("params", "readable") == "unreadable") {
        if (row->name != std::string("cuMemCreate") || !step.has("result"))
            wrong(step, "params=unreadable needs a cuMemCreate that fails (result=)");
        request.unreadable = unreadable_page();
    }
    request.stream = stream(step);
    if (step.has("pool"))
        request.pool = memory(step, "pool", Side::device).address;
    find_source(request, *row, step);
    if (auto memory = allocate(*row, row->function() + suffix(function), request, Pace(step)))
        remember(name, tagged(*memory, step));
}

void reset_device(const Step&)
{
    if (runtime_major)
        setup("cudaDeviceReset");
    else {
        ready_driver();
        setup("cuDevicePrimaryCtxReset_v2", device());
    }
    Place primary{device(), nullptr};
    forget(primary);
    forget_memory(primary);
}

// newcontext [DEVICE]
void new_context(const Step& step)
{
    enter_context(step.words.empty() ? device() : static_cast<int>(step.number(0)));
}

// primary retain; primary release
void primary_context(const Step& step)
{
    ready_driver();
    void* context = nullptr;
    if (step.word(0) == "retain")
        setup("cuDevicePrimaryCtxRetain", &context, device());
    else if (step.word(0) == "release")
        setup("cuDevicePrimaryCtxRelease_v2", device());
    else
        wrong(step, "expected retain or release");
}

void destroy_context(const Step& step)
{
    if (!place().second)
        wrong(step, "this thread has created no context");
    forget_memory(place());
    leave_context();
}

} // namespace workload
