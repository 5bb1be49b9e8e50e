// SPDX-License-Identifier: Apache-2.0
// Witness: counts a program's CUDA calls independently of the tools. The driver loads this library if
// CUDA_INJECTION64_PATH names it, and CUPTI reports the program's calls to it. WITNESS_CUPTI is the path of CUPTI. At
// exit, the library writes PID.json to WITNESS_FOLDER.
#include "cupti_abi.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

namespace {

// CUPTI, opened at run time.
struct Cupti : cupti::Functions {
    std::string missing; // why the library cannot be used; no function may be called unless this is empty

    explicit Cupti(const char* path)
    {
        // Never closed: the driver calls into it until the process exits.
        void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            missing = dlerror();
            return;
        }
#define RESOLVE(name, ...)                                                                                             \
    name = reinterpret_cast<decltype(name)>(dlsym(library, "cupti" #name));                                            \
    if (!name)                                                                                                         \
        missing += " cupti" #name;
        CUPTI_FUNCTIONS(RESOLVE)
#undef RESOLVE
        if (!missing.empty())
            missing = std::string(path) + " has no" + missing;
    }

    // Error message for a failed function.
    std::string message(const char* function, cupti::Result result) const
    {
        const char* text = nullptr;
        GetResultString(result, &text);
        return std::string(function) + ": " + (text ? text : std::to_string(result));
    }
};

struct Tally {
    std::atomic<uint64_t> count, bytes;
};

template<class Row>
void add(Row& row, size_t index, uint64_t bytes)
{
    Tally& tally = row[index < row.size() ? index : 0]; // index 0 is "unknown" in both tables
    tally.count++;
    tally.bytes += bytes;
}

nlohmann::json json_of(const Tally& tally)
{
    return {{"count", tally.count.load()}, {"bytes", tally.bytes.load()}};
}

// Sums by name, since several values may share a name.
template<class Row, class Names>
nlohmann::json json_of(const Row& row, const Names& names)
{
    std::map<std::string, std::array<uint64_t, 2>> sums;
    for (size_t i = 0; i < row.size(); i++)
        if (row[i].count) {
            sums[names[i]][0] += row[i].count;
            sums[names[i]][1] += row[i].bytes;
        }
    auto out = nlohmann::json::object();
    for (const auto& [name, sum] : sums)
        out[name] = {{"count", sum[0]}, {"bytes", sum[1]}};
    return out;
}

// Counts of this process's calls and records, as reported by CUPTI. Counting calls takes no lock, except for launches.
class Counts {
public:
    void call(uint32_t function, const cupti::CallData& data)
    {
        if (data.site != cupti::Site::exit)
            return;
        if (function >= calls_.size()) {
            beyond_++;
            return;
        }
        bool failed = data.result && *static_cast<const int*>(data.result);
        calls_[function].all++;
        calls_[function].failed += failed;
        if (!data.symbol || failed)
            return;
        std::lock_guard hold(lock_);
        auto found = launches_.find(std::string_view(data.symbol));
        found == launches_.end() ? launches_[data.symbol] = 1 : found->second++;
    }

    void record(const cupti::Record& record)
    {
        switch (record.kind) {
        case cupti::Kind::concurrent_kernel:
            kernels_++;
            return;
        case cupti::Kind::memcpy:
        case cupti::Kind::memcpy_between: {
            const auto& copy = reinterpret_cast<const cupti::Copy&>(record);
            return add(copies_, copy.direction, copy.bytes);
        }
        case cupti::Kind::memset: {
            sets_.count++;
            sets_.bytes += reinterpret_cast<const cupti::Set&>(record).bytes;
            return;
        }
        case cupti::Kind::memory: {
            const auto& memory = reinterpret_cast<const cupti::Memory&>(record);
            if (memory.operation == cupti::allocation || memory.operation == cupti::release)
                return add(memory_[memory.operation - cupti::allocation], memory.memory, memory.bytes);
        }
        }
        unknown_++;
    }

    nlohmann::json report(const Cupti& cupti) const
    {
        auto calls = nlohmann::json::object();
        for (uint32_t function = 0; function < calls_.size(); function++) {
            const char* name = nullptr;
            if (!calls_[function].all)
                continue;
            cupti.GetCallbackName(cupti::Domain::driver, function, &name);
            calls[name ? name : "#" + std::to_string(function)] = {{"count", calls_[function].all.load()},
                                                                   {"failed", calls_[function].failed.load()}};
        }
        std::lock_guard hold(lock_);
        return {{"calls", calls},
                {"calls_beyond", beyond_.load()},
                {"launches", launches_},
                {"kernels", kernels_.load()},
                {"copies", json_of(copies_, cupti::directions)},
                {"sets", json_of(sets_)},
                {"allocated", json_of(memory_[0], cupti::memories)},
                {"released", json_of(memory_[1], cupti::memories)},
                {"dropped_records", dropped_.load()},
                {"unknown_records", unknown_.load()}};
    }

    void dropped(size_t records) { dropped_ += records; }

private:
    struct Calls {
        std::atomic<uint64_t> all, failed;
    };
    std::array<Calls, 4096> calls_{}; // by function number; CUPTI 13.0 has 806 driver functions
    std::atomic<uint64_t> beyond_{0}; // calls of functions with higher numbers
    std::array<Tally, std::size(cupti::directions)> copies_{};
    std::array<std::array<Tally, std::size(cupti::memories)>, 2> memory_{}; // [0]: allocated, [1]: released
    Tally sets_{};
    std::atomic<uint64_t> kernels_{0}, dropped_{0}, unknown_{0};
    mutable std::mutex lock_; // protects launches_
    std::map<std::string, uint64_t, std::less<>> launches_;
};

constexpr size_t buffer_bytes = 1 << 20, alignment = 8; // records need this alignment

class Witness {
public:
    explicit Witness(const char* cupti) : cupti_(cupti), pid_(getpid()) { failure_ = begin(); }

    // Must be called while the driver still works. Does nothing in a forked child, which has no records.
    void flush()
    {
        if (failure_.empty() && getpid() == pid_)
            if (auto result = cupti_.ActivityFlushAll(cupti::flush_forced))
                failure_ = cupti_.message("cuptiActivityFlushAll", result);
    }

    // Writes nothing in a child forked after the injection: CUDA does not work there.
    void write(const std::string& folder) const
    {
        if (getpid() != pid_)
            return;
        nlohmann::json report = {{"pid", pid_}, {"version", version_}, {"failure", failure_}};
        if (cupti_.missing.empty())
            report.update(counts_.report(cupti_));
        std::ofstream(folder + "/" + std::to_string(pid_) + ".json")
            << report.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) << '\n';
    }

private:
    std::string begin();
    static void called(void* self, cupti::Domain, uint32_t function, const cupti::CallData* data)
    {
        static_cast<Witness*>(self)->counts_.call(function, *data);
    }
    static void requested(uint8_t** buffer, size_t* bytes, size_t* max_records);
    static void completed(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);

    Cupti cupti_;
    Counts counts_;
    pid_t pid_;
    uint32_t version_ = 0;
    std::string failure_;
};

// A global, since CUPTI's buffer callbacks have no user argument. Never destroyed: the driver calls it until the
// process exits.
Witness* witness = nullptr;

std::string Witness::begin()
{
    if (!cupti_.missing.empty())
        return cupti_.missing;
    if (auto result = cupti_.GetVersion(&version_))
        return cupti_.message("cuptiGetVersion", result);
    if (version_ < cupti::oldest_version)
        return "CUPTI " + std::to_string(version_) + " is too old; CUDA 11.2 or newer is needed";
    void* subscriber = nullptr;
    if (auto result = cupti_.Subscribe(&subscriber, called, this))
        return cupti_.message("cuptiSubscribe", result);
    if (auto result = cupti_.EnableDomain(1, subscriber, cupti::Domain::driver))
        return cupti_.message("cuptiEnableDomain", result);
    if (auto result = cupti_.ActivityRegisterCallbacks(requested, completed))
        return cupti_.message("cuptiActivityRegisterCallbacks", result);
    for (auto kind : {cupti::Kind::concurrent_kernel, cupti::Kind::memcpy, cupti::Kind::memcpy_between,
                      cupti::Kind::memset, cupti::Kind::memory})
        if (auto result = cupti_.ActivityEnable(kind))
            return cupti_.message(("cuptiActivityEnable " + std::to_string(static_cast<int>(kind))).c_str(), result);
    return {};
}

void Witness::requested(uint8_t** buffer, size_t* bytes, size_t* max_records)
{
    *buffer = static_cast<uint8_t*>(aligned_alloc(alignment, buffer_bytes));
    *bytes = *buffer ? buffer_bytes : 0;
    *max_records = 0; // no limit
}

void Witness::completed(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid)
{
    cupti::Record* record = nullptr;
    while (!witness->cupti_.ActivityGetNextRecord(buffer, valid, &record))
        witness->counts_.record(*record);
    size_t dropped = 0;
    if (!witness->cupti_.ActivityGetNumDroppedRecords(context, stream, &dropped))
        witness->counts_.dropped(dropped);
    free(buffer);
}

// If this library is preloaded, the program waits for the file WITNESS_GATE before it starts.
__attribute__((constructor)) void wait_at_gate()
{
    const char* gate = getenv("WITNESS_GATE");
    while (gate && access(gate, F_OK))
        usleep(1000);
}

// Runs after the program's own exit handlers and destructors.
__attribute__((destructor)) void write_report()
{
    const char* folder = getenv("WITNESS_FOLDER");
    if (witness && folder)
        witness->write(folder);
}

} // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection()
{
    const char* cupti = getenv("WITNESS_CUPTI");
    if (witness || !cupti)
        return 0;
    witness = new Witness(cupti);
    atexit([] { witness->flush(); });
    return 1;
}
