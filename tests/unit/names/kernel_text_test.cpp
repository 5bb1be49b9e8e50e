// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_text.hpp"

#include "names/demangle.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <set>
#include <string>
#include <tuple>

using namespace gpusnoop;

namespace {

size_t code_points(std::string_view text)
{
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

double seconds_of(auto work)
{
    std::clock_t start = std::clock(); // CPU time, as the machine may be busy
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Names of real kernels, shortened as in tables.
constexpr std::pair<std::string_view, std::string_view> kernels[] = {
#define KERNEL(short_form, symbol) {short_form, symbol},
#include "tests/unit/names/kernel_names.def"
};

} // namespace

TEST_CASE("kernel names are shortened", "[text]")
{
    const std::string add = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                            "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
    const std::string where =
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::where_kernel_impl("
        "at::TensorIterator&)::{lambda()#1}::operator()() const::{lambda()#8}::operator()() const::{lambda(bool, "
        "float, float)#1}, at::detail::Array<char*, 4> >(int, at::detail::Array<char*, 4>)";
    const std::string cutlass = "void cutlass::Kernel2<cutlass_80_tensorop_h16816gemm_256x128_32x3_nn_align8>("
                                "cutlass_80_tensorop_h16816gemm_256x128_32x3_nn_align8::Params)";
    const std::string flash =
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 32, 4, false, false, cutlass::half_t, "
        "Flash_kernel_traits<128, 128, 32, 4, cutlass::half_t> >, false, true, false>(flash::Flash_fwd_params)";
    const std::string thrust =
        "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<"
        "thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<int>, int>, unsigned long>, "
        "thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<int>, int>, unsigned long>(int, int)";
    const std::string cub =
        "void cub::CUB_200200_750_NS::DeviceReduceKernel<cub::CUB_200200_750_NS::DeviceReducePolicy<float, unsigned "
        "int, thrust::plus<float> >::Policy600, thrust::device_ptr<float>, float*, unsigned int, thrust::plus<float>, "
        "float>(thrust::device_ptr<float>, float*, unsigned int, thrust::plus<float>)";
    const std::string triton = "triton_red_fused__to_copy_add_embedding_mean_mul_pow_rsqrt_native_layer_norm_12";
    const std::string nested = "void elementwise_kernel<128, 2, void at::gpu_kernel_impl<foo>(at::Base&, foo const&)::"
                               "{lambda(int)#1}>(int, x)";

    const std::tuple<std::string, size_t, const char*> names[] = {
        {add, 200,
         "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, "
         "3ul>>"},
        {add, 80, "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char*, 3ul>>"},
        {add, 60, "vectorized_elementwise_kernel<4, CUDAFun...d<...>, ...>#1c61"},
        {add, 50, "vectorized_elementwise_kernel<4, ...>#1c61"},
        {add, 40, "vectorized_elementwise_kernel<...>#1c61"},
        {add, 30, "vectorized_...wise_kernel#1c61"},
        {add, 20, "vectorize...e_kernel"},
        {add, 3, "vec"},
        {add, 0, ""},
        {where, 120,
         "at::native::vectorized_elementwise_kernel<4, where_kernel_impl::{lambda#1}::{lambda#8}::{lambda#1}, "
         "Array<char*, 4>>"},
        {where, 80, "vectorized_elementwise_kernel<4, where_kernel_impl...a#8}::{lambda#1}, ...>#9eb1"},
        {cutlass, 80, "cutlass::Kernel2<cutlass_80_tensorop_h16816gemm_256x128_32x3_nn_align8>"},
        {cutlass, 60, "Kernel2<cutlass_80_tensorop_h1...56x128_32x3_nn_align8>#bf85"},
        {cutlass, 20, "Kernel2<...>"},
        {flash, 60, "flash_fwd_kernel<Flash_fwd_kernel_traits<...>, ...>#cf52"},
        {thrust, 60, "_kernel_agent<ParallelForAgent<...>, functor<...>, ...>#0718"},
        {cub, 80, "DeviceReduceKernel<Policy600, device_ptr<...>, float*, unsigned int, ...>#19c0"},
        {cub, 40, "DeviceReduceKernel<Policy600, ...>#19c0"},
        {nested, 80, "elementwise_kernel<128, 2, gpu_kernel_impl<foo>::{lambda#1}>"},
        {triton, 60, "triton_red_fused__to_copy_...rsqrt_native_layer_norm_12#fb4e"},
        {"triton_poi_fused_add_0", 60, "triton_poi_fused_add_0"},
        {"ampere_sgemm_128x64_tn", 60, "ampere_sgemm_128x64_tn"},
        {"void mul_mat_q<(ggml_type)12, 64, 8, true>(char const*, int)", 60, "mul_mat_q<(ggml_type)12, 64, 8, true>"},
        {"void mul_mat_q<(ggml_type)12, 64, 8, true>(char const*, int)", 30, "mul_mat_q<...>#fc5a"},
        {"vecadd(float*, float const*, int)", 60, "vecadd"},
        {"vecadd(float*) [clone .kd]", 60, "vecadd"},
        {"void (anonymous namespace)::kernel<int>(int)", 60, "(anonymous namespace)::kernel<int>"},
        {"void (anonymous namespace)::kernel<int>(int)", 20, "kernel<int>"},
        {"void f<int>(at::Foo&)::{lambda(int)#1}::operator()(int) const", 60,
         "f<int>(at::Foo&)::{lambda(int)#1}::operator()"},
        {"void f<int>(at::Foo&)::{lambda(int)#1}::operator()(int) const", 40, "f<int>::{lambda#1}::operator()"},
        {"std::ostream& ns::operator<< <int>(std::ostream&, int)", 60, "ns::operator<< <int>"},
        {"bool ns::operator< <int>(int)", 60, "ns::operator< <int>"},
        {"ns::Foo<&ns::operator-> >::operator->() const", 60, "ns::Foo<&ns::operator->>::operator->"},
        {"ns::Foo::operator()(int) const", 60, "ns::Foo::operator()"},
        {"void foo<((4)>(5)), (x)<(3), &ns::bar>(int)", 60, "foo<((4)>(5)), (x)<(3), &ns::bar>"},
        {"decltype (a+b) foo<int>(int)", 60, "foo<int>"},
        {"unsigned long ns::foo<void (*)(int)>(int)", 60, "ns::foo<void (*)(int)>"},
        {"foo[abi:cxx11]<int>(int)", 60, "foo[abi:cxx11]<int>"},
        {"unbalanced<foo(int", 60, "unbalanced<foo(int"},
        {"unbalanced)>foo<(int", 15, "unbala...o<(int"},
        {"", 60, ""},
        {"()", 60, "()"},
        {"::", 60, "::"},
        {"k\u00e9rn\u00e9l_\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d_12", 9, "k\u00e9r..._12"},
    };
    for (const auto& [name, width, expected] : names) {
        CAPTURE(name, width);
        CHECK(shorten_kernel(name, width) == expected);
    }
    for (const std::string& name : {add, where, cutlass, flash, thrust, cub, triton, nested})
        for (size_t width = 0; width < name.size() + 2; ++width)
            if (code_points(shorten_kernel(name, width)) > width) {
                CAPTURE(name, width);
                FAIL("too wide");
            }
}

TEST_CASE("shortening hostile names takes little time", "[text]")
{
    auto both = [](std::string name) {
        CHECK(seconds_of([&] { CHECK(code_points(shorten_kernel(name, 50)) <= 50); }) < 2);
    };
    for (const char* part :
         {"<", "a<", "(", "{", "a::", "(anonymous namespace)::", "operator", ",", " ", "a<b,c>::", "\xff"}) {
        std::string name;
        while (name.size() < 60000)
            name += part;
        both(name);
        both("f<" + name + ">(int)");
    }
    std::string deep;
    for (int i = 0; i < 10000; ++i)
        deep = "a<" + deep;
    both(deep + std::string(10000, '>') + "(int)");
    both(std::string(1 << 20, 'a'));
}

TEST_CASE("shortened names of real kernels stay distinct", "[text]")
{
    static_assert(std::size(kernels) >= 100);
    std::set<std::string> distinct;
    for (const auto& [expected, symbol] : kernels) {
        CAPTURE(symbol);
        const std::string name = shorten_kernel(demangle(symbol), 48);
        CHECK(name == expected);
        CHECK(distinct.insert(name).second);
    }
}

TEST_CASE("the base name of a kernel", "[text]")
{
    const std::pair<std::string_view, std::string_view> names[] = {
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> "
         ">"
         "(int, at::native::CUDAFunctor_add<float>)",
         "vectorized_elementwise_kernel"},
        {"void cutlass::Kernel2<cutlass_80_tensorop_h16816gemm>(cutlass_80_tensorop_h16816gemm::Params)", "Kernel2"},
        {"void mul_mat_q<(ggml_type)12, 64, 8, true>(char const*, int)", "mul_mat_q"},
        {"vecadd(float*, float const*, int)", "vecadd"},
        {"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
        {"void (anonymous namespace)::kernel<int>(int)", "kernel"},
        {"unbalanced<foo(int", "unbalanced<foo(int"},
        {"", ""},
    };
    for (const auto& [name, expected] : names)
        CHECK(base_of_kernel(name) == expected);
}
