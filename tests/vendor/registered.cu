// SPDX-License-Identifier: Apache-2.0
// Kernels registered by clang -x cuda. Compiled for the host only, which needs no CUDA toolkit.
#define __global__ __attribute__((global))

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
using cudaError_t = int;
using cudaStream_t = void*;

extern "C" cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, unsigned long, cudaStream_t);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, unsigned long, cudaStream_t);
extern "C" cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, unsigned long*, cudaStream_t*);

__global__ void external_kernel(float*) {}
static __global__ void local_kernel(int) {}

namespace space {

template<class T, int N>
__global__ void template_kernel(T)
{}

} // namespace space

extern "C" void launch_all()
{
    external_kernel<<<1, 2, 0, 0>>>(nullptr);
    local_kernel<<<1, 2, 0, 0>>>(1);
    space::template_kernel<float, 3><<<1, 1, 0, 0>>>(1.0f);
    space::template_kernel<int, 4><<<1, 1, 0, 0>>>(1);
}

#ifndef LIBRARY
int main(int argc, char**)
{
    if (argc > 1)
        launch_all();
}
#endif
