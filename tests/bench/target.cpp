// SPDX-License-Identifier: Apache-2.0
// Traced program of the benchmark: opens a CUDA driver library and calls one of its functions in a loop, on request.
//
//     target LIBRARY [FUNCTION]                default: cuLaunchKernel; cuGraphLaunch launches a graph of 8 kernels
//     target LIBRARY ALLOC+FREE                pair of functions: allocates and frees
//     target LIBNCCL ncclAllReduce             in a communicator of one rank
//     target LIBCUDART cudaLaunchKernel        calls the driver's cuLaunchKernel
//
// Prints "ready", followed by "ADDRESS OFFSET CODE" for each function: its address, its offset in the file, and its
// first 16 bytes in hexadecimal. Then it reads commands from stdin and answers each with "CALLS NANOSECONDS_PER_CALL":
//
//     run SECONDS [CALLS_PER_SECOND]           calls the function; for a pair, the time is that of both calls
//     hold COUNT                               makes COUNT allocations and frees none
//
// It keeps running on one CPU during the whole benchmark, so that rounds of many configurations can alternate.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <iostream>
#include <sched.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;

using LaunchKernel = int(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters,
                         void** extra);
struct Dim3 {
    unsigned x, y, z;
};

constexpr size_t allocation_bytes = 4096;
constexpr unsigned graph_kernels = 8;

template<class F>
F* symbol(void* library, const std::string& name)
{
    void* address = dlsym(library, name.c_str());
    if (!address) {
        fprintf(stderr, "target: %s\n", dlerror());
        exit(1);
    }
    return reinterpret_cast<F*>(address);
}

// Returns the file offset of a mapped address.
uint64_t file_offset(const void* address)
{
    std::ifstream maps("/proc/self/maps");
    const auto wanted = reinterpret_cast<uint64_t>(address);
    for (std::string line; std::getline(maps, line);) {
        uint64_t begin = 0, end = 0, offset = 0;
        if (sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && wanted >= begin && wanted < end)
            return wanted - begin + offset;
    }
    return 0;
}

void print_location(const void* function)
{
    const auto* code = static_cast<const unsigned char*>(function);
    printf(" %lu %lu ", reinterpret_cast<uint64_t>(code), file_offset(code));
    for (unsigned i = 0; i < 16; i++)
        printf("%02x", code[i]);
}

// Makes that many calls with a handle, and returns how long they took.
using Batch = std::function<Nanoseconds(void* handle, unsigned calls)>;

template<class Call>
Batch timed(Call call)
{
    return [call](void* handle, unsigned calls) -> Nanoseconds {
        const auto begin = Clock::now();
        for (unsigned i = 0; i < calls; i++)
            call(handle);
        return Clock::now() - begin;
    };
}

class Target {
public:
    Target(const char* path, const std::string& function);
    void run(double seconds, double rate);
    void hold(unsigned count);

private:
    void open_context();
    Batch batch_of(const std::string& function);
    void register_kernel() const;
    void* kernel();
    void* graph();

    void* library_;
    Batch batch_;
    int (*allocate_)(uint64_t* address, size_t bytes) = nullptr; // set for a pair of functions
    void* module_ = nullptr;
    void* stream_ = nullptr;
    void* exec_ = nullptr; // instantiated graph
    bool is_launch_, is_graph_;
};

Target::Target(const char* path, const std::string& function)
    : library_(dlopen(path, RTLD_NOW)), is_launch_(function == "cuLaunchKernel"), is_graph_(function == "cuGraphLaunch")
{
    if (!library_) {
        fprintf(stderr, "target: %s\n", dlerror());
        exit(1);
    }
    batch_ = batch_of(function);
    if (function.starts_with("cuda"))
        batch_(nullptr, 1); // loads the driver
    else if (!function.starts_with("nccl"))
        open_context();
    printf("ready");
    std::istringstream names(function);
    for (std::string name; std::getline(names, name, '+');)
        print_location(dlsym(library_, name.c_str()));
    printf("\n");
}

// Without a device cuInit fails, and each traced call fails immediately, but hits the same probes.
void Target::open_context()
{
    void* context = nullptr;
    if (symbol<int(unsigned)>(library_, "cuInit")(0))
        return;
    symbol<int(void**, int)>(library_, "cuDevicePrimaryCtxRetain")(&context, 0);
    symbol<int(void*)>(library_, "cuCtxSetCurrent")(context);
    symbol<int(void**, const void*)>(library_, "cuModuleLoadData")(&module_, "bench");
    symbol<int(void**, unsigned)>(library_, "cuStreamCreate")(&stream_, 0);
}

// Passes the arguments of cuLaunchKernel to any other single function: functions with fewer parameters ignore the rest.
Batch Target::batch_of(const std::string& function)
{
    static void* parameters[] = {nullptr};
    if (const size_t plus = function.find('+'); plus != function.npos) {
        allocate_ = symbol<int(uint64_t*, size_t)>(library_, function.substr(0, plus));
        return timed([allocate = allocate_, free = symbol<int(uint64_t)>(library_, function.substr(plus + 1))](void*) {
            uint64_t address = 0;
            if (allocate(&address, allocation_bytes))
                address = allocation_bytes; // an invalid address, so that the free fails, too
            free(address);
        });
    }
    if (is_graph_)
        return timed([this, call = symbol<int(void*, void*)>(library_, function)](void* exec) { call(exec, stream_); });
    if (function == "ncclAllReduce") {
        void* communicator = nullptr;
        symbol<int(void**, int, const int*)>(library_, "ncclCommInitAll")(&communicator, 1, nullptr);
        using AllReduce = int(const void* from, void* to, size_t count, int type, int reduction, void*, void* stream);
        return timed([communicator, call = symbol<AllReduce>(library_, function)](void*) {
            call(nullptr, nullptr, 1 << 20, 7, 0, communicator, nullptr);
        });
    }
    if (function == "cudaLaunchKernel") {
        register_kernel();
        using Launch = int(const void* function, Dim3 grid, Dim3 block, void** parameters, size_t shared, void* stream);
        return timed([this, call = symbol<Launch>(library_, function)](void*) {
            call(this, {1024, 1, 1}, {256, 1, 1}, parameters, 4096, nullptr);
        });
    }
    return timed([call = symbol<LaunchKernel>(library_, function)](void* kernel) {
        call(kernel, 1024, 1, 1, 256, 1, 1, 4096, nullptr, parameters, nullptr);
    });
}

// Registers a kernel like code generated by nvcc, but with a fat binary that has only a header. The kernel's key,
// normally the address of a host function, is this object's address.
void Target::register_kernel() const
{
    alignas(8) static constexpr unsigned char fat_binary[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 48};
    static struct {
        unsigned magic, version;
        const void* data;
        void* unused;
    } wrapper = {0x466243b1, 1, fat_binary, nullptr};
    void** handle = symbol<void**(void*)>(library_, "__cudaRegisterFatBinary")(&wrapper);
    symbol<void(void**, const void*, const char*, const char*, int, void*, void*, void*, void*, int*)>(
        library_, "__cudaRegisterFunction")(handle, this, "bench", "bench", -1, nullptr, nullptr, nullptr, nullptr,
                                            nullptr);
}

// Gets the function again for each run, so that a tracer attached since the last run learns the kernel's name.
void* Target::kernel()
{
    void* function = nullptr;
    if (module_ && (is_launch_ || is_graph_))
        symbol<int(void**, void*, const char*)>(library_, "cuModuleGetFunction")(&function, module_, "bench");
    return function;
}

// Captures and instantiates the graph again for each run, so that a tracer attached since the last run sees it.
void* Target::graph()
{
    if (!stream_)
        return nullptr;
    if (exec_)
        symbol<int(void*)>(library_, "cuGraphExecDestroy")(exec_);
    void* function = kernel();
    void* parameters[] = {nullptr};
    void* captured = nullptr;
    symbol<int(void*, int)>(library_, "cuStreamBeginCapture_v2")(stream_, 0);
    for (unsigned i = 0; i < graph_kernels; i++)
        symbol<LaunchKernel>(library_, "cuLaunchKernel")(function, 1024, 1, 1, 256, 1, 1, 4096, stream_, parameters,
                                                         nullptr);
    symbol<int(void*, void**)>(library_, "cuStreamEndCapture")(stream_, &captured);
    symbol<int(void**, void*, unsigned long)>(library_, "cuGraphInstantiateWithFlags")(&exec_, captured, 0);
    symbol<int(void*)>(library_, "cuGraphDestroy")(captured);
    return exec_;
}

// Prints the median over batches. A batch takes much longer than reading the clock and is much shorter than a time
// slice, so neither affects the median.
void Target::run(double seconds, double rate)
{
    void* handle = is_graph_ ? graph() : kernel();
    uint64_t made = 0;
    unsigned calls = 8;
    do {
        calls *= 2;
        made += calls;
    } while (batch_(handle, calls) < std::chrono::microseconds(100));

    std::vector<double> samples;
    const auto begin = Clock::now();
    auto elapsed = [begin] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    while (elapsed() < seconds) {
        samples.push_back(batch_(handle, calls).count() / calls);
        made += calls;
        while (elapsed() * rate < static_cast<double>(samples.size() * calls) && rate != 0)
            ;
    }
    std::ranges::nth_element(samples, samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2));
    printf("%lu %.2f\n", allocate_ ? 2 * made : made, samples[samples.size() / 2]);
}

void Target::hold(unsigned count)
{
    uint64_t address = 0;
    const auto begin = Clock::now();
    for (unsigned i = 0; i < count; i++)
        if (allocate_(&address, allocation_bytes))
            exit(1);
    printf("%u %.2f\n", count, Nanoseconds(Clock::now() - begin).count() / count);
}

} // namespace

// Built as a library for python_target.py, too.
#ifdef AS_LIBRARY
extern "C" int target_main(int argc, char** argv)
#else
int main(int argc, char** argv)
#endif
{
    if (argc < 2) {
        fprintf(stderr, "usage: target LIBRARY [FUNCTION]\n");
        return 2;
    }
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    setpriority(PRIO_PROCESS, 0, -20);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    Target target(argv[1], argc > 2 ? argv[2] : "cuLaunchKernel");
    for (std::string line, command; std::getline(std::cin, line);) {
        double seconds = 0, rate = 0;
        std::istringstream(line) >> command >> seconds >> rate;
        if (command == "hold")
            target.hold(static_cast<unsigned>(seconds));
        else
            target.run(seconds, rate);
    }
    return 0;
}
