// SPDX-License-Identifier: Apache-2.0
// The part of CUPTI's ABI that the witness needs, as in CUDA 13.0 (CUPTI_API_VERSION 130001). New versions append
// fields to records: the fields declared here have had the same offsets since CUDA 11.2. abi_check.cpp compares them
// with NVIDIA's headers, if installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace cupti {

inline constexpr uint32_t oldest_version = 15; // CUDA 11.2, the first with memory records

enum Result : int { success = 0 }; // returned by all functions

enum class Domain : int { driver = 1 };
enum class Site : int { enter = 0, exit = 1 };

struct CallData { // CUpti_CallbackData
    Site site;
    const char* function;
    const void* parameters;
    void* result;       // a CUresult, at exit only
    const char* symbol; // name of the kernel, for launches
    void* context;
    uint32_t context_id;
    uint64_t* correlation_data;
    uint32_t correlation_id;
};
static_assert(offsetof(CallData, result) == 24 && offsetof(CallData, symbol) == 32 && sizeof(CallData) == 72);

using Callback = void (*)(void*, Domain, uint32_t function, const CallData*);

enum class Kind : int { memcpy = 1, memset = 2, concurrent_kernel = 10, memcpy_between = 22, memory = 49 };

struct Record {
    Kind kind;
};

struct Copy { // CUpti_ActivityMemcpy and CUpti_ActivityMemcpyPtoP, all versions
    Kind kind;
    uint8_t direction;
    uint8_t source;
    uint8_t destination;
    uint8_t flags;
    uint64_t bytes;
};
static_assert(offsetof(Copy, bytes) == 8);

struct Set { // CUpti_ActivityMemset, all versions
    Kind kind;
    uint32_t value;
    uint64_t bytes;
};
static_assert(offsetof(Set, bytes) == 8);

struct Memory { // CUpti_ActivityMemory2 to 4
    Kind kind;
    int operation;
    int memory;
    uint32_t correlation_id;
    uint64_t address;
    uint64_t bytes;
};
static_assert(offsetof(Memory, bytes) == 24);

// Names for CUPTI's values. An array counts as device memory here.
inline constexpr const char* directions[] = {"unknown", "h2d", "d2h", "h2d", "d2h", "d2d",
                                             "d2d",     "d2d", "d2d", "h2h", "p2p"};
inline constexpr const char* memories[] = {"unknown", "pageable", "pinned",        "device",
                                           "array",   "managed",  "device_static", "managed_static"};
enum Operation : int { allocation = 1, release = 2 };

inline constexpr uint32_t flush_forced = 1;

using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);

// X(name without "cupti", parameters)
#define CUPTI_FUNCTIONS(X)                                                                                             \
    X(GetVersion, uint32_t*)                                                                                           \
    X(Subscribe, void** subscriber, Callback, void*)                                                                   \
    X(EnableDomain, uint32_t enable, void* subscriber, Domain)                                                         \
    X(GetCallbackName, Domain, uint32_t function, const char**)                                                        \
    X(GetResultString, Result, const char**)                                                                           \
    X(ActivityRegisterCallbacks, BufferRequested, BufferCompleted)                                                     \
    X(ActivityEnable, Kind)                                                                                            \
    X(ActivityFlushAll, uint32_t flags)                                                                                \
    X(ActivityGetNextRecord, uint8_t* buffer, size_t valid, Record**)                                                  \
    X(ActivityGetNumDroppedRecords, void* context, uint32_t stream, size_t*)

struct Functions {
#define CUPTI_MEMBER(name, ...) Result (*name)(__VA_ARGS__) = nullptr;
    CUPTI_FUNCTIONS(CUPTI_MEMBER)
#undef CUPTI_MEMBER
};

} // namespace cupti
