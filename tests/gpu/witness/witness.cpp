// SPDX-License-Identifier: Apache-2.0
// Witness: counts a program's CUDA calls independently of the tools. The driver loads this library if
// CUDA_INJECTION64_PATH names it, and CUPTI reports the program's calls to it. WITNESS_CUPTI is the path of CUPTI. At
// exit, the library writes PID.json to WITNESS_FOLDER.
#include "counts.hpp"

#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace witness {
namespace {

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
        if (cupti_.missing().empty())
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
    if (!cupti_.missing().empty())
        return cupti_.missing();
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
} // namespace witness

extern "C" __attribute__((visibility("default"))) int InitializeInjection()
{
    const char* cupti = getenv("WITNESS_CUPTI");
    if (witness::witness || !cupti)
        return 0;
    witness::witness = new witness::Witness(cupti);
    atexit([] { witness::witness->flush(); });
    return 1;
}
