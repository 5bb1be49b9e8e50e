// SPDX-License-Identifier: Apache-2.0
// All other runtime functions. Most of them make one driver call.
#include "runtime.hpp"

using namespace standin;

STANDIN_ONE(cudaDeviceSynchronize, (), cuCtxSynchronize)
#if CUDART < 13
STANDIN_ONE(cudaThreadSynchronize, (), cuCtxSynchronize)
#endif
STANDIN_ONE(cudaDeviceReset, (), cuDevicePrimaryCtxReset, current_device())

STANDIN_SAME(StreamCreate, (void** stream), stream, 0)
STANDIN_SAME(StreamDestroy, (void* stream), stream)
STANDIN_SAME_PTSZ(StreamSynchronize, (void* stream), stream)
STANDIN_SAME_PTSZ(StreamQuery, (void* stream), stream)
STANDIN_SAME_PTSZ(StreamWaitEvent, (void* stream, void* event, unsigned flags), stream, event, flags)

STANDIN_SAME(EventCreate, (void** event), event, 0)
STANDIN_SAME(EventDestroy, (void* event), event)
STANDIN_SAME(EventSynchronize, (void* event), event)
STANDIN_SAME(EventQuery, (void* event), event)
STANDIN_SAME_PTSZ(EventRecord, (void* event, void* stream), event, stream)

RUNTIME(cudaGetLastError)()
{
    int result = last_error();
    last_error() = success;
    return result;
}
