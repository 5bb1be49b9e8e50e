/* SPDX-License-Identifier: Apache-2.0 */
/* Types of HIP's API that signatures_hip.def uses. Layouts and field names are from HIP's public documentation; most
 * are those of CUDA's types. If a type differs in ROCm 5.x, the name of that version's type ends with the version. */
#ifndef GPUSNOOP_TESTS_ABI_TYPES_HIP_H
#define GPUSNOOP_TESTS_ABI_TYPES_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

/* Enumerations of the size of int. */
typedef int hipError_t, hipDevice_t, hipMemcpyKind, hipMemAllocationHandleType, hipStreamCaptureMode;
typedef int hipGraphExecUpdateResult, hipMemoryType;

/* Handles and callbacks: pointers. */
typedef void *hipDeviceptr_t, *hipExternalMemory_t;
typedef struct opaque *hipArray_t, *hipMipmappedArray_t, *hipCtx_t, *hipExecutionCtx_t, *hipEvent_t, *hipModule_t;
typedef struct opaque *hipFunction_t, *hipKernel_t, *hipLibrary_t, *hipStream_t, *hipGraph_t, *hipGraphNode_t;
typedef struct opaque *hipGraphExec_t, *hipMemPool_t, *hipMemGenericAllocationHandle_t;
typedef const struct opaque* hipArray_const_t;
typedef void (*hipHostFn_t)(void* user_data);
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void* user_data);

/* Structures behind pointers, whose fields no tool reads. */
typedef struct opaque hipChannelFormatDesc, hipMemcpyAttributes, hipMemPoolPtrExportData, hipKernelNodeParams;
typedef struct opaque hipMemsetParams, hipHostNodeParams, hipGraphEdgeData, hipGraphInstantiateParams;
typedef struct opaque hipBatchMemOpNodeParams, hipExternalSemaphoreSignalNodeParams;
typedef struct opaque hipExternalSemaphoreWaitNodeParams;

/* Structures like CUDA's. */
typedef cudaLaunchConfig_t hipLaunchConfig_t;
typedef CUlaunchConfig HIP_LAUNCH_CONFIG;
typedef struct cudaLaunchParams hipLaunchParams;
typedef CUDA_LAUNCH_PARAMS hipFunctionLaunchParams;
typedef CUDA_MEMCPY2D hip_Memcpy2D;
typedef struct cudaExtent hipExtent;
typedef struct cudaPitchedPtr hipPitchedPtr;
typedef struct cudaMemcpy3DParms hipMemcpy3DParms;
typedef struct cudaMemcpy3DPeerParms hipMemcpy3DPeerParms;
typedef struct cudaMemLocation hipMemLocation;
typedef struct cudaMemcpy3DBatchOp hipMemcpy3DBatchOp;
typedef cudaIpcMemHandle_t hipIpcMemHandle_t;
typedef CUDA_ARRAY_DESCRIPTOR HIP_ARRAY_DESCRIPTOR;
typedef CUDA_ARRAY3D_DESCRIPTOR HIP_ARRAY3D_DESCRIPTOR;
typedef struct cudaMemPoolProps hipMemPoolProps;
typedef CUmemAllocationProp hipMemAllocationProp;
typedef struct cudaMemAllocNodeParams hipMemAllocNodeParams;
typedef struct cudaGraphNodeParams hipGraphNodeParams;
typedef struct cudaExternalMemoryHandleDesc hipExternalMemoryHandleDesc;
typedef struct cudaExternalMemoryBufferDesc hipExternalMemoryBufferDesc;

typedef struct {
    unsigned int srcXInBytes, srcY, srcZ, srcLOD;
    hipMemoryType srcMemoryType;
    const void* srcHost;
    hipDeviceptr_t srcDevice;
    hipArray_t srcArray;
    unsigned int srcPitch, srcHeight;
    unsigned int dstXInBytes, dstY, dstZ, dstLOD;
    hipMemoryType dstMemoryType;
    void* dstHost;
    hipDeviceptr_t dstDevice;
    hipArray_t dstArray;
    unsigned int dstPitch, dstHeight;
    unsigned int WidthInBytes, Height, Depth;
} HIP_MEMCPY3D_5;

typedef struct {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    hipMemoryType srcMemoryType;
    const void* srcHost;
    hipDeviceptr_t srcDevice;
    hipArray_t srcArray;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    hipMemoryType dstMemoryType;
    void* dstHost;
    hipDeviceptr_t dstDevice;
    hipArray_t dstArray;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} HIP_MEMCPY3D;

typedef struct { /* up to 5.2 */
    int type;
    hipMemLocation location;
    void* win32HandleMetaData;
    unsigned char allocFlags[8];
} hipMemAllocationProp_52;

#endif
