// SPDX-License-Identifier: Apache-2.0
// A witness that is not ours: the driver loads this into any program that has it as CUDA_INJECTION64_PATH, and CUPTI
// tells it what the program does. WITNESS_CUPTI is CUPTI's file, WITNESS_FOLDER where PID.json is written at the end.
#include "counts.hpp"

#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace witness {
namespace {

constexpr size_t buffer_bytes = 1 << 20, alignment = 8; // records need that

class Witness {
public:
    explicit Witness(const char* cupti) : cupti_(cupti), pid_(getpid()) { failure_ = begin(); }

    // The device's records: while the driver still is what it was.
    void flush()
    {
        if (failure_.empty() && getpid() == pid_)
            if (auto result = cupti_.ActivityFlushAll(cupti::flush_forced))
                failure_ = cupti_.why("cuptiActivityFlushAll", result);
    }

    // A child that was forked when its parent had this has none of its own, and CUDA does not work in it.
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
    static void requested(uint8_t** buffer, size_t* bytes, size_t* most_records);
    static void completed(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);

    Cupti cupti_;
    Counts counts_;
    pid_t pid_;
    uint32_t version_ = 0;
    std::string failure_;
};

// CUPTI hands its buffers to functions without an argument of ours. Never destroyed: the driver calls until the end.
Witness* witness = nullptr;

std::string Witness::begin()
{
    if (!cupti_.missing().empty())
        return cupti_.missing();
    if (auto result = cupti_.GetVersion(&version_))
        return cupti_.why("cuptiGetVersion", result);
    if (version_ < cupti::oldest_version)
        return "CUPTI " + std::to_string(version_) + " is older than that of CUDA 11.2";
    void* subscriber = nullptr;
    if (auto result = cupti_.Subscribe(&subscriber, called, this))
        return cupti_.why("cuptiSubscribe", result);
    if (auto result = cupti_.EnableDomain(1, subscriber, cupti::Domain::driver))
        return cupti_.why("cuptiEnableDomain", result);
    if (auto result = cupti_.ActivityRegisterCallbacks(requested, completed))
        return cupti_.why("cuptiActivityRegisterCallbacks", result);
    for (auto kind : {cupti::Kind::concurrent_kernel, cupti::Kind::memcpy, cupti::Kind::memcpy_between,
                      cupti::Kind::memset, cupti::Kind::memory})
        if (auto result = cupti_.ActivityEnable(kind))
            return cupti_.why(("cuptiActivityEnable " + std::to_string(static_cast<int>(kind))).c_str(), result);
    return {};
}

void Witness::requested(uint8_t** buffer, size_t* bytes, size_t* most_records)
{
    *buffer = static_cast<uint8_t*>(aligned_alloc(alignment, buffer_bytes));
    *bytes = *buffer ? buffer_bytes : 0;
    *most_records = 0; // as many as fit
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

// A program that is preloaded with this waits until there is the file WITNESS_GATE, before it does anything.
__attribute__((constructor)) void wait_at_gate()
{
    const char* gate = getenv("WITNESS_GATE");
    while (gate && access(gate, F_OK))
        usleep(1000);
}

// When all of the program's own ends are over.
__attribute__((destructor)) void tell()
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
