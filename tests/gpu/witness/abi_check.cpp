// SPDX-License-Identifier: Apache-2.0
// Compares cupti_abi.hpp with NVIDIA's headers; compiled if they are installed.
#include "cupti_abi.hpp"

#include <cupti.h>

namespace {

template<class Ours, class Theirs>
constexpr bool same(Ours ours, Theirs theirs)
{
    return static_cast<long>(ours) == static_cast<long>(theirs);
}

static_assert(same(cupti::success, CUPTI_SUCCESS) && same(cupti::Domain::driver, CUPTI_CB_DOMAIN_DRIVER_API));
static_assert(same(cupti::Site::enter, CUPTI_API_ENTER) && same(cupti::Site::exit, CUPTI_API_EXIT));

static_assert(sizeof(cupti::CallData) == sizeof(CUpti_CallbackData));
static_assert(offsetof(cupti::CallData, function) == offsetof(CUpti_CallbackData, functionName));
static_assert(offsetof(cupti::CallData, result) == offsetof(CUpti_CallbackData, functionReturnValue));
static_assert(offsetof(cupti::CallData, symbol) == offsetof(CUpti_CallbackData, symbolName));
static_assert(offsetof(cupti::CallData, correlation_id) == offsetof(CUpti_CallbackData, correlationId));

static_assert(same(cupti::Kind::memcpy, CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(same(cupti::Kind::memset, CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(same(cupti::Kind::concurrent_kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(same(cupti::Kind::memcpy_between, CUPTI_ACTIVITY_KIND_MEMCPY2));
static_assert(same(cupti::Kind::memory, CUPTI_ACTIVITY_KIND_MEMORY2));

static_assert(offsetof(cupti::Copy, direction) == offsetof(CUpti_ActivityMemcpy6, copyKind));
static_assert(offsetof(cupti::Copy, bytes) == offsetof(CUpti_ActivityMemcpy6, bytes));
static_assert(offsetof(cupti::Copy, direction) == offsetof(CUpti_ActivityMemcpyPtoP4, copyKind));
static_assert(offsetof(cupti::Copy, bytes) == offsetof(CUpti_ActivityMemcpyPtoP4, bytes));
static_assert(offsetof(cupti::Set, bytes) == offsetof(CUpti_ActivityMemset4, bytes));
static_assert(offsetof(cupti::Memory, operation) == offsetof(CUpti_ActivityMemory4, memoryOperationType));
static_assert(offsetof(cupti::Memory, memory) == offsetof(CUpti_ActivityMemory4, memoryKind));
static_assert(offsetof(cupti::Memory, bytes) == offsetof(CUpti_ActivityMemory4, bytes));

static_assert(std::size(cupti::directions) == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP + 1);
static_assert(std::size(cupti::memories) == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC + 1);
static_assert(same(cupti::allocation, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION));
static_assert(same(cupti::release, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE));
static_assert(same(cupti::flush_forced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));

} // namespace
