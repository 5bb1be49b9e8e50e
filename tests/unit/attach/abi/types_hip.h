/* SPDX-License-Identifier: Apache-2.0 */
/* Types of HIP's API that signatures_hip.def uses. Layouts and field names are from HIP's public documentation. If a
 * type differs in ROCm 5.x, the name of that version's type ends with the version. */
#ifndef GPUSNOOP_TESTS_ABI_TYPES_HIP_H
#define GPUSNOOP_TESTS_ABI_TYPES_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

/* Enumerations of the size of int. */
typedef int hipError_t;
typedef int hipDevice_t;
typedef enum { hipMemcpyHostToHost } hipMemcpyKind;
typedef enum { hipMemHandleTypeNone } hipMemAllocationHandleType;
typedef enum { hipStreamCaptureModeGlobal } hipStreamCaptureMode;
typedef enum { hipGraphExecUpdateSuccess } hipGraphExecUpdateResult;
typedef enum { hipGraphNodeTypeKernel } hipGraphNodeType;
typedef enum { hipMemoryTypeHost } hipMemoryType;
typedef enum { HIP_AD_FORMAT_UNSIGNED_INT8 = 1 } hipArray_Format;

/* Handles and callbacks: pointers. */
typedef void* hipDeviceptr_t;
typedef struct hipArray* hipArray_t;
typedef const struct hipArray* hipArray_const_t;
typedef struct hipMipmappedArray* hipMipmappedArray_t;
typedef struct ihipCtx_t* hipCtx_t;
typedef struct ihipExecutionCtx_t* hipExecutionCtx_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef struct ihipModule_t* hipModule_t;
typedef struct ihipModuleSymbol_t* hipFunction_t;
typedef struct ihipKernel_t* hipKernel_t;
typedef struct ihipLibrary_t* hipLibrary_t;
typedef struct ihipStream_t* hipStream_t;
typedef struct ihipGraph* hipGraph_t;
typedef struct hipGraphNode* hipGraphNode_t;
typedef struct hipGraphExec* hipGraphExec_t;
typedef struct ihipMemPoolHandle_t* hipMemPool_t;
typedef struct ihipMemGenericAllocationHandle* hipMemGenericAllocationHandle_t;
typedef void* hipExternalMemory_t;
typedef void (*hipHostFn_t)(void* user_data);
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void* user_data);

typedef struct hipChannelFormatDesc_st hipChannelFormatDesc;
typedef struct hipMemcpyAttributes_st hipMemcpyAttributes;
typedef struct hipMemPoolPtrExportData_st hipMemPoolPtrExportData;
typedef struct hipKernelNodeParams_st hipKernelNodeParams;
typedef struct hipMemsetParams_st hipMemsetParams;
typedef struct hipHostNodeParams_st hipHostNodeParams;
typedef struct hipGraphEdgeData_st hipGraphEdgeData;
typedef struct hipGraphInstantiateParams_st hipGraphInstantiateParams;
typedef struct hipBatchMemOpNodeParams_st hipBatchMemOpNodeParams;
typedef struct hipExternalSemaphoreSignalNodeParams_st hipExternalSemaphoreSignalNodeParams;
typedef struct hipExternalSemaphoreWaitNodeParams_st hipExternalSemaphoreWaitNodeParams;
typedef struct hipLaunchAttribute_st hipLaunchAttribute;

typedef struct {
    struct dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    hipStream_t stream;
    hipLaunchAttribute* attrs;
    unsigned int numAttrs;
} hipLaunchConfig_t;

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    hipStream_t hStream;
    hipLaunchAttribute* attrs;
    unsigned int numAttrs;
} HIP_LAUNCH_CONFIG;

typedef struct {
    void* func;
    struct dim3 gridDim, blockDim;
    void** args;
    size_t sharedMem;
    hipStream_t stream;
} hipLaunchParams;

typedef struct {
    hipFunction_t function;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    hipStream_t hStream;
    void** kernelParams;
} hipFunctionLaunchParams;

typedef struct {
    size_t srcXInBytes, srcY;
    hipMemoryType srcMemoryType;
    const void* srcHost;
    hipDeviceptr_t srcDevice;
    hipArray_t srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    hipMemoryType dstMemoryType;
    void* dstHost;
    hipDeviceptr_t dstDevice;
    hipArray_t dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} hip_Memcpy2D;

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

typedef struct {
    size_t width, height, depth;
} hipExtent;

typedef struct {
    size_t x, y, z;
} hipPos;

typedef struct {
    void* ptr;
    size_t pitch, xsize, ysize;
} hipPitchedPtr;

typedef struct {
    hipArray_t srcArray;
    hipPos srcPos;
    hipPitchedPtr srcPtr;
    hipArray_t dstArray;
    hipPos dstPos;
    hipPitchedPtr dstPtr;
    hipExtent extent;
    hipMemcpyKind kind;
} hipMemcpy3DParms;

typedef struct {
    hipArray_t srcArray;
    hipPos srcPos;
    hipPitchedPtr srcPtr;
    int srcDevice;
    hipArray_t dstArray;
    hipPos dstPos;
    hipPitchedPtr dstPtr;
    int dstDevice;
    hipExtent extent;
} hipMemcpy3DPeerParms;

typedef struct {
    int type, id;
} hipMemLocation;

typedef struct {
    int type;
    union {
        struct {
            void* ptr;
            size_t rowLength, layerHeight;
            hipMemLocation locHint;
        } ptr;
        struct {
            hipArray_t array;
            size_t offset[3];
        } array;
    } op;
} hipMemcpy3DOperand;

typedef struct {
    hipMemcpy3DOperand src, dst;
    hipExtent extent;
    unsigned int srcAccessOrder, flags;
} hipMemcpy3DBatchOp;

typedef struct {
    char reserved[64];
} hipIpcMemHandle_t;

typedef struct {
    size_t Width, Height;
    hipArray_Format Format;
    unsigned int NumChannels;
} HIP_ARRAY_DESCRIPTOR;

typedef struct {
    size_t Width, Height, Depth;
    hipArray_Format Format;
    unsigned int NumChannels, Flags;
} HIP_ARRAY3D_DESCRIPTOR;

typedef struct {
    int allocType, handleTypes;
    hipMemLocation location;
    void* win32SecurityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
} hipMemPoolProps;

typedef struct { /* up to 5.2 */
    int type;
    hipMemLocation location;
    void* win32HandleMetaData;
    unsigned char allocFlags[8];
} hipMemAllocationProp_52;

typedef struct {
    int type;
    hipMemAllocationHandleType requestedHandleType;
    hipMemLocation location;
    void* win32HandleMetaData;
    unsigned char allocFlags[8];
} hipMemAllocationProp;

typedef struct {
    hipMemPoolProps poolProps;
    const void* accessDescs;
    size_t accessDescCount, bytesize;
    void* dptr;
} hipMemAllocNodeParams;

typedef struct {
    hipGraph_t graph;
} hipChildGraphNodeParams;

typedef struct {
    hipGraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        hipChildGraphNodeParams graph;
    };
    long long reserved2;
} hipGraphNodeParams;

typedef struct {
    int type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
    } handle;
    unsigned long long size;
    unsigned int flags, reserved[16];
} hipExternalMemoryHandleDesc;

typedef struct {
    unsigned long long offset, size;
    unsigned int flags, reserved[16];
} hipExternalMemoryBufferDesc;

#endif
