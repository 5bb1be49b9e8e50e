// SPDX-License-Identifier: Apache-2.0
// The step "alloc", and contexts, which take their memory with them.
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

// Private pages of a file, each of them read: memory that nobody allocated.
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

Side side_of(const AllocRow& row, const Wanted& wanted)
{
    auto is = [&](const char* what) { return !strcmp(row.what, what); };
    if (is("managed"))
        return Side::unknown;
    bool on_host = is("pinned") || is("registered") || wanted.location.type == standin::Location::host;
    return on_host ? Side::host : is("array") ? Side::array : Side::device;
}

// Physical memory of the host is pinned; what a capturing stream allocates is the graph's.
standin::Holding holding_of(const AllocRow& row, const Wanted& wanted, bool recorded)
{
    using enum standin::Holding;
    bool host = row.holding == vmm && wanted.location.type == standin::Location::host;
    return recorded ? graph : host ? pinned : row.holding;
}

// A file as cuMemExportToShareableHandle makes it, in the process that sends it.
int file_of(const standin::Shared& shared)
{
    int fd = memfd_create("memory of another process", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, &shared, sizeof shared, 0) != sizeof shared)
        fail("cannot make a file");
    return fd;
}

// What it is imported from: memory of this process that the script names, else another process's that is so large.
void find_source(Wanted& wanted, const AllocRow& row, const Step& step)
{
    if (row.source == Source::none)
        return;
    ready_driver();
    if (row.source == Source::graph)
        wanted.graph = graph_for_memory();
    if (row.source == Source::external && !step.has("from"))
        wrong(step, "from=NAME says of which external memory");
    if (step.has("from"))
        wanted.source = memory(step, "from", Side::device);
    if (step.has("from") && row.source != Source::external)
        wanted.bytes = wanted.source.bytes;
    wanted.shared.bytes = wanted.bytes;
    void* address = wanted.source.address;
    if (row.source == Source::ipc && address)
        setup("cuIpcGetMemHandle", &wanted.shared, address);
    if (row.source == Source::pool_pointer && address)
        setup("cuMemPoolExportPointer", &wanted.shared, address);
    if (row.source == Source::file && address)
        setup("cuMemExportToShareableHandle", &wanted.file, address, 1, 0ull);
    else if (row.source == Source::file)
        wanted.file = file_of(wanted.shared);
}

// Nothing, where the call failed.
std::optional<Memory> allocate(const AllocRow& row, const std::string& function, Wanted& wanted, const Pace& pace)
{
    if (!is_runtime(function))
        ready_driver();
    if (registers(row))
        wanted.address = touched(wanted.bytes);
    Call call = call_of(function, "alloc");
    call.synchronous = !is_async(function);
    call.stream = is_async(function) ? reinterpret_cast<uintptr_t>(wanted.stream) : 0;
    bool recorded = is_async(function) && driver_is_capturing(wanted.stream);
    void* target = symbol(function);
    auto results = make_calls<Timed::yes>(pace, 1, [&] { return row.call(target, wanted); });
    call.data = data_of(holding_of(row, wanted, recorded), wanted.bytes);
    call.data->destination = row.what;
    add_results(call, results, pace, row.nested);
    if (wanted.file >= 0)
        close(wanted.file);
    if (!results[0].count) {
        if (registers(row))
            free(wanted.address);
        return {};
    }
    Memory memory = {.what = row.what,
                     .side = side_of(row, wanted),
                     .address = wanted.address,
                     .bytes = wanted.bytes,
                     .holding = call.data->holding,
                     .free_by = row.free_by,
                     .owned = row.owned,
                     .place = place()};
    if (is_physical(row))
        map_physical(memory);
    return memory;
}

// BYTES is what width, height and depth come to, or 0 where they are to say it.
void find_shape(Wanted& w, const AllocRow& row, const Step& step)
{
    size_t height = step.number("height", is_array(row) && !step.has("width") ? 0 : 1);
    size_t depth = step.number("depth", 0), rows = std::max<size_t>(height, 1) * std::max<size_t>(depth, 1);
    w.array.format = static_cast<unsigned>(step.number("format", 1));
    w.array.channels = static_cast<unsigned>(step.number("channels", 1));
    w.levels = static_cast<unsigned>(step.number("levels", 1));
    size_t element = is_array(row) ? standin::bytes_of_format(w.array.format) * w.array.channels : 1;
    if (!element)
        wrong(step, "no such format");
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

// What the program goes on with: an address in whose ignored bits it keeps something.
Memory tagged(Memory memory, const Step& step)
{
    if (step.has("tag") && !standin::ignored_bits)
        wrong(step, "this processor ignores no bits of an address");
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
    Wanted wanted{.bytes = bytes, .width = bytes, .height = 1, .array = {bytes, 1, 0, 1, 1, 0}};
    auto memory = allocate(*row, row->function, wanted, Pace(nothing));
    if (!memory)
        fail("no memory for copies");
    return *memory;
}

// alloc NAME BYTES [fn=FUNCTION] and so on
void alloc(const Step& step)
{
    auto name = step.word(0);
    auto function = step.option("fn", runtime_major ? "cudaMalloc" : "cuMemAlloc_v2");
    Wanted wanted{.bytes = step.number(1)};
    if (function == "host" || function == "mmap") {
        void* address = function == "host" ? touched(wanted.bytes) : mapped_file(wanted.bytes);
        Memory memory{.what = "host",
                      .side = Side::host,
                      .address = address,
                      .bytes = wanted.bytes,
                      .free_by = function == "host" ? "free" : "munmap"};
        return remember(name, tagged(memory, step));
    }
    const AllocRow* row = find_alloc_row(function);
    if (!row)
        wrong(step, "nothing allocates by " + function);
    find_shape(wanted, *row, step);
    if (step.option("location", "device") == "host")
        wanted.location = {standin::Location::host, 0};
    else
        wanted.location.id = device();
    if (step.option("params", "readable") == "unreadable") {
        if (row->name != std::string("cuMemCreate") || !step.has("result"))
            wrong(step, "only a cuMemCreate that fails may get an unreadable structure");
        wanted.unreadable = unreadable_page();
    }
    wanted.stream = stream(step);
    if (step.has("pool"))
        wanted.pool = memory(step, "pool", Side::device).address;
    find_source(wanted, *row, step);
    if (auto memory = allocate(*row, row->function + suffix(function), wanted, Pace(step)))
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
        wrong(step, "retain or release?");
}

void destroy_context(const Step& step)
{
    if (!place().second)
        wrong(step, "this thread made no context");
    forget_memory(place());
    leave_context();
}

} // namespace workload
