// SPDX-License-Identifier: Apache-2.0
// Stand-in for the part of CUPTI that tests/gpu/witness uses: callbacks around calls into the stand-in driver, and
// activity records. STANDIN_CUPTI_LOSES names a function whose first call is not reported; STANDIN_CUPTI_VERSION
// sets the version that the library returns.
#include "records.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#define CUPTI(name) extern "C" __attribute__((visibility("default"))) cupti::Result cupti##name

using namespace standin;

namespace {

constexpr int invalid_parameter = 1, no_more_records = 12, not_initialized = 15; // CUptiResult
constexpr cupti::Result result(int code)
{
    return static_cast<cupti::Result>(code);
}

constexpr size_t stride = (sizeof(AnyRecord) + 7) / 8 * 8;

struct Profiler {
    cupti::Callback callback = nullptr;
    void* argument = nullptr;
    bool calls = false;
    const char* lost_function = getenv("STANDIN_CUPTI_LOSES");

    std::mutex lock; // protects the members below
    std::set<cupti::Kind> kinds;
    cupti::BufferRequested requested = nullptr;
    cupti::BufferCompleted completed = nullptr;
    uint8_t* buffer = nullptr;
    size_t bytes = 0, used = 0, dropped = 0;

    bool drop_once(const char* function)
    {
        std::lock_guard hold(lock);
        bool match = lost_function && !strcmp(lost_function, function);
        lost_function = match ? nullptr : lost_function;
        return match;
    }

    void hand_over() // requires the lock
    {
        if (buffer)
            completed(nullptr, 0, std::exchange(buffer, nullptr), bytes, used);
        bytes = used = 0;
    }

    void add(const AnyRecord& record)
    {
        std::lock_guard hold(lock);
        if (!requested || !kinds.contains(record.any.kind))
            return;
        if (used + stride > bytes) {
            hand_over();
            size_t max_records = 0;
            requested(&buffer, &bytes, &max_records);
        }
        if (used + stride > bytes) {
            dropped++;
            return;
        }
        memcpy(buffer + used, &record, sizeof record);
        used += stride;
    }
};

Profiler& profiler()
{
    static Profiler& one = *new Profiler; // never destroyed: the driver calls it until the process exits
    return one;
}

const char* name_of(unsigned function)
{
    static auto traced_name = reinterpret_cast<const char* (*)(unsigned)>(driver_function("standin_traced_name"));
    return traced_name ? traced_name(function) : nullptr;
}

thread_local bool inside; // true while CUPTI itself calls the driver: these calls are not the program's

void traced(const TracedCall& call)
{
    Profiler& to = profiler();
    const char* name = name_of(call.function);
    if (inside || !to.calls || (call.is_return && to.drop_once(name)))
        return;
    inside = true;
    cupti::CallData data = {};
    data.site = call.is_return ? cupti::Site::exit : cupti::Site::enter;
    data.function = name;
    data.result = call.result;
    data.symbol = kernel_of(call, name);
    to.callback(to.argument, cupti::Domain::driver, call.function + 1, &data); // + 1: 0 is not a function number
    if (call.is_return && !*call.result)
        records_of(call, name, [&](const AnyRecord& record) { to.add(record); });
    inside = false;
}

} // namespace

CUPTI(GetVersion)(uint32_t* version)
{
    const char* other = getenv("STANDIN_CUPTI_VERSION");
    *version = other ? static_cast<uint32_t>(atoi(other)) : 130001;
    return cupti::success;
}

CUPTI(Subscribe)(void** subscriber, cupti::Callback callback, void* argument)
{
    auto trace = reinterpret_cast<void (*)(Tracer)>(driver_function("standin_trace"));
    if (!trace || profiler().callback)
        return result(not_initialized);
    profiler().callback = callback;
    profiler().argument = argument;
    *subscriber = &profiler();
    trace(traced);
    return cupti::success;
}

CUPTI(EnableDomain)(uint32_t enable, void* subscriber, cupti::Domain domain)
{
    if (subscriber != &profiler() || domain != cupti::Domain::driver)
        return result(invalid_parameter);
    profiler().calls = enable;
    return cupti::success;
}

CUPTI(GetCallbackName)(cupti::Domain, uint32_t function, const char** name)
{
    *name = name_of(function - 1);
    return *name ? cupti::success : result(invalid_parameter);
}

CUPTI(GetResultString)(cupti::Result code, const char** text)
{
    *text = code == invalid_parameter ? "CUPTI_ERROR_INVALID_PARAMETER" : "CUPTI_ERROR_UNKNOWN";
    return cupti::success;
}

CUPTI(ActivityRegisterCallbacks)(cupti::BufferRequested requested, cupti::BufferCompleted completed)
{
    std::lock_guard hold(profiler().lock);
    profiler().requested = requested;
    profiler().completed = completed;
    return cupti::success;
}

CUPTI(ActivityEnable)(cupti::Kind kind)
{
    std::lock_guard hold(profiler().lock);
    profiler().kinds.insert(kind);
    return cupti::success;
}

CUPTI(ActivityFlushAll)(uint32_t)
{
    std::lock_guard hold(profiler().lock);
    profiler().hand_over();
    return cupti::success;
}

CUPTI(ActivityGetNextRecord)(uint8_t* buffer, size_t valid, cupti::Record** record)
{
    auto* next = *record ? reinterpret_cast<uint8_t*>(*record) + stride : buffer;
    if (next + stride > buffer + valid)
        return result(no_more_records);
    *record = reinterpret_cast<cupti::Record*>(next);
    return cupti::success;
}

// Called from within hand_over(), which holds the lock.
CUPTI(ActivityGetNumDroppedRecords)(void*, uint32_t, size_t* records)
{
    *records = std::exchange(profiler().dropped, 0);
    return cupti::success;
}
