// SPDX-License-Identifier: Apache-2.0
// Test program with kernels launched by <<<>>>, built by nvcc. For each line "COUNT" of stdin it launches the first
// kernel COUNT times, the next one COUNT + 1 times, ..., and answers like caller.py.
//
// clang -x cuda compiles it for the host only, which needs no CUDA toolkit.
#include <cstdio>

#if defined(__clang__) && !defined(__NVCC__)
#define __global__ __attribute__((global))
#define __trap __builtin_trap

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
enum cudaError_t : int { cudaSuccess };
using cudaStream_t = void*;

extern "C" cudaError_t cudaGetLastError();
extern "C" cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, unsigned long, cudaStream_t);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, unsigned long = 0, cudaStream_t = nullptr);
extern "C" cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, unsigned long*, cudaStream_t*);
#endif

__global__ void external_kernel(float* data)
{
    if (data) // it is null; a real device must not fault
        data[0] = 1;
}

static __global__ void local_kernel(int value)
{
    if (value < 0)
        __trap();
}

namespace space {

template<class T, int N>
__global__ void template_kernel(T value)
{
    if (value == T(N))
        __trap();
}

} // namespace space

// The launches fail without a device or with an old driver.
template<class Launch>
void repeat(const char* kernel, int count, unsigned grid, unsigned block, unsigned smem, Launch launch)
{
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < count; i++) {
        launch();
        result = cudaGetLastError();
    }
    printf(R"({"type":"call","function":"<<<>>>","kind":"kernel","kernel":"%s","count":%d,"result":%d,"stream":"0x0",)"
           R"("grid":[%u,1,1],"block":[%u,1,1],"smem":%u})" "\n",
           kernel, count, static_cast<int>(result), grid, block, smem);
}

int main()
{
    for (int count = 0; scanf("%d", &count) == 1;) {
        repeat("external_kernel(float*)", count, 7, 32, 0, [] { external_kernel<<<7, 32>>>(nullptr); });
        repeat("local_kernel(int)", count + 1, 8, 64, 48, [] { local_kernel<<<8, 64, 48>>>(1); });
        repeat("void space::template_kernel<float, 3>(float)", count + 2, 9, 96, 0,
               [] { space::template_kernel<float, 3><<<9, 96>>>(1.0f); });
        repeat("void space::template_kernel<int, 4>(int)", count + 3, 10, 128, 16,
               [] { space::template_kernel<int, 4><<<10, 128, 16>>>(1); });
        puts(R"({"type":"done"})");
        fflush(stdout);
    }
    return 0;
}
