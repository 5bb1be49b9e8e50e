/* SPDX-License-Identifier: Apache-2.0 */
/* Types of CUDA's API that signatures.def uses, so that the tests need no CUDA headers. Layouts and field names are
 * from CUDA's public documentation. Types of the driver and the runtime with the same layout are declared once. */
#ifndef GPUSNOOP_TESTS_ABI_TYPES_H
#define GPUSNOOP_TESTS_ABI_TYPES_H

#include <stddef.h>

/* Enumerations of the size of int. */
typedef int CUresult, cudaError_t, ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef int CUdevice, CUstreamCaptureMode, CUmemorytype, CUmemAllocationHandleType, CUarray_format;
typedef int CUgraphExecUpdateResult;
enum cudaMemcpyKind { cudaMemcpyHostToHost };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal };
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess };

typedef unsigned int cuuint32_t;
typedef unsigned long long cuuint64_t, CUdeviceptr, CUmemGenericAllocationHandle;
typedef struct {
    char internal[128];
} ncclUniqueId;

/* Handles and callbacks: pointers. */
typedef struct opaque *ncclComm_t, *CUcontext, *CUmodule, *CUfunction, *CUkernel, *CUlibrary, *CUstream, *CUgraph;
typedef struct opaque *CUgraphNode, *CUgraphExec, *CUgreenCtx, *CUevent, *CUarray, *CUmipmappedArray, *CUmemoryPool;
typedef struct opaque *CUexternalMemory, *cudaStream_t, *cudaEvent_t, *cudaArray_t, *cudaMipmappedArray_t;
typedef struct opaque *cudaMemPool_t, *cudaExternalMemory_t, *cudaGraph_t, *cudaGraphNode_t, *cudaGraphExec_t;
typedef struct opaque *cudaFunction_t, *cudaKernel_t, *cudaLibrary_t;
typedef const struct opaque* cudaArray_const_t;
typedef void (*CUhostFn)(void* user_data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void* user_data);
typedef void (*cudaHostFn_t)(void* user_data);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* user_data);

/* Structures behind pointers, whose fields no tool reads. */
typedef struct opaque CUgraphEdgeData, CUmemcpyAttributes, CUexecAffinityParam, CUctxCreateParams;
typedef struct opaque CUmemPoolPtrExportData, CUgraphExecUpdateResultInfo, CUmulticastObjectProp, CUlaunchAttribute;
typedef struct opaque CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMSET_NODE_PARAMS;
typedef struct opaque CUDA_HOST_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS;
typedef struct opaque CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct opaque CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
typedef struct opaque cudaGraphEdgeData, cudaGraphInstantiateParams, cudaGraphExecUpdateResultInfo;
struct cudaChannelFormatDesc;
struct cudaMemPoolPtrExportData;
struct cudaKernelNodeParams;
struct cudaMemsetParams;
struct cudaHostNodeParams;
struct cudaExternalSemaphoreSignalNodeParams;
struct cudaExternalSemaphoreWaitNodeParams;
struct cudaExternalMemoryMipmappedArrayDesc;
struct cudaMemcpyAttributes;

struct uint3 {
    unsigned int x, y, z;
};

struct dim3 {
    unsigned int x, y, z;
};

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void* attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void** kernelParams;
} CUDA_LAUNCH_PARAMS;

typedef struct {
    struct dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    void* attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;

struct cudaLaunchParams { /* up to CUDA 12 */
    void* func;
    struct dim3 gridDim, blockDim;
    void** args;
    size_t sharedMem;
    cudaStream_t stream;
};

typedef struct {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void* reserved0; /* context of the peer copy */
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void* reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER;

struct cudaMemLocation {
    int type, id;
};
typedef struct cudaMemLocation CUmemLocation;

struct cudaMemcpy3DOperand {
    int type;
    union {
        struct {
            void* ptr;
            size_t rowLength, layerHeight;
            struct cudaMemLocation locHint;
        } ptr;
        struct {
            cudaArray_t array;
            size_t offset[3];
        } array;
    } op;
};

struct cudaExtent {
    size_t width, height, depth;
};

struct cudaMemcpy3DBatchOp {
    struct cudaMemcpy3DOperand src, dst;
    struct cudaExtent extent;
    unsigned int srcAccessOrder, flags;
};
typedef struct cudaMemcpy3DBatchOp CUDA_MEMCPY3D_BATCH_OP;

typedef struct {
    int type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void* win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct {
    size_t Width, Height;
    CUarray_format Format;
    unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t Width, Height, Depth;
    CUarray_format Format;
    unsigned int NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

struct cudaMemPoolProps {
    int allocType, handleTypes;
    struct cudaMemLocation location;
    void* win32SecurityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
};
typedef struct cudaMemPoolProps CUmemPoolProps;

struct cudaMemAllocNodeParams {
    struct cudaMemPoolProps poolProps;
    const void* accessDescs;
    size_t accessDescCount, bytesize;
    void* dptr;
};
typedef struct cudaMemAllocNodeParams CUDA_MEM_ALLOC_NODE_PARAMS;

struct cudaChildGraphNodeParams {
    cudaGraph_t graph;
};

struct cudaGraphNodeParams {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        struct cudaChildGraphNodeParams graph;
    };
    long long reserved2;
};
typedef struct cudaGraphNodeParams CUgraphNodeParams;

struct cudaExternalMemoryHandleDesc {
    int type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
    } handle;
    unsigned long long size;
    unsigned int flags, reserved[16]; /* reserved in the runtime's type since CUDA 13 */
};
typedef struct cudaExternalMemoryHandleDesc CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

struct cudaExternalMemoryBufferDesc {
    unsigned long long offset, size;
    unsigned int flags, reserved[16]; /* reserved in the runtime's type since CUDA 13 */
};
typedef struct cudaExternalMemoryBufferDesc CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct {
    char reserved[64];
} CUipcMemHandle, cudaIpcMemHandle_t;

struct cudaPos {
    size_t x, y, z;
};

struct cudaPitchedPtr {
    void* ptr;
    size_t pitch, xsize, ysize;
};

struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    enum cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    int dstDevice;
    struct cudaExtent extent;
};

#endif
