// SPDX-License-Identifier: Apache-2.0
// Calls that HIP has as CUDA has them, and structures that they share.
#pragma once

namespace gpusnoop {

inline constexpr const char* launch_params =
    "(func, int grid_x, int grid_y, int grid_z, int block_x, int block_y, int block_z, int smem, stream)";
inline constexpr const char* launch_dim3 = "(func, dim3 grid, dim3 block, _, smem, stream)";
// Lists: CUDA_LAUNCH_PARAMS and hipFunctionLaunchParams; cudaLaunchParams and hipLaunchParams.
inline constexpr const char* module_launch_list =
    "(*{0 func, 8 dim3 grid, 20 dim3 block, 32 int smem, 40 stream, 56}, int count)";
inline constexpr const char* launch_list = "(*{0 func, 8 dim3 grid, 20 dim3 block, 40 smem, 48 stream, 56}, int count)";

// CUDA_MEMCPY2D and hip_Memcpy2D; cudaMemcpy3DParms, cudaMemcpy3DPeerParms, and HIP's; CUDA_MEMCPY3D_BATCH_OP,
// cudaMemcpy3DBatchOp and hipMemcpy3DBatchOp.
inline constexpr const char* copy_2d =
    "(*{16 int src_type, 24 src_host, 32 src, 72 int dst_type, 80 dst_host, 88 dst, 112 bytes, 120 height})";
inline constexpr const char* copy_3d_runtime =
    "elements (*{0 src_array, 32 src, 64 dst_array, 96 dst, 128 bytes, 136 height, 144 depth, 152 int direction})";
inline constexpr const char* copy_3d_peer =
    "p2p elements (*{0 src_array, 32 src, 72 dst_array, 104 dst, 144 bytes, 152 height, 160 depth})";
inline constexpr const char* copies_3d =
    "async operand-types elements (count, "
    "*{0 int src_type, 8 src, 40 int dst_type, 48 dst, 80 bytes, 88 height, 96 depth, 112})";

// CUDA_ARRAY3D_DESCRIPTOR and HIP_ARRAY3D_DESCRIPTOR
inline constexpr const char* array_3d = "array (out, *{0 bytes, 8 height, 16 depth, 24 int format, 28 int channels})";

} // namespace gpusnoop
