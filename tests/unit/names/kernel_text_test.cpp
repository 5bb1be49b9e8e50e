// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_text.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <random>
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
    std::clock_t start = std::clock(); // of the processor: others may be busy too
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Function types that each hold the one before twice: the result doubles with every level.
std::string doubling_name(int levels)
{
    auto reference = [](int id) {
        constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        std::string text;
        for (int rest = id - 1; id > 0 && (text.empty() || rest > 0); rest /= 36)
            text.insert(text.begin(), digits[static_cast<size_t>(rest % 36)]);
        return "S" + text + "_";
    };
    std::string name = "_Z1fPFviE";
    for (int i = 0; i < levels; ++i)
        name += "PFv" + reference(2 * i + 1) + reference(2 * i + 1) + "E";
    return name;
}

} // namespace

TEST_CASE("names are demangled", "[text]")
{
    const std::pair<const char*, const char*> names[] = {
        {"main", "main"},
        {"", ""},
        {"f", "f"}, // a type to __cxa_demangle
        {"_Z", "_Z"},
        {"_Znot a name", "_Znot a name"},
        {"_Z6vecaddPfPKfi", "vecadd(float*, float const*, int)"},
        {"_Z6kernelv.kd", "kernel() [clone .kd]"},
        // clang's and nvcc's host stubs
        {"_Z21__device_stub__vecaddPf", "vecadd(float*)"},
        {"_ZN2ns21__device_stub__kernelEPf", "ns::kernel(float*)"},
        {"__device_stub__foo", "foo"},
        {"my__device_stub__foo", "my__device_stub__foo"},
        {"__device_stub__", "__device_stub__"},
        {"_Z24__device_stub__templatedIfLi4EEvPT_", "void templated<float, 4>(float*)"},
        {"_ZL30__device_stub__Z6vecaddPfS_S_iPfS_S_i", "vecadd(float*, float*, float*, int)"},
        // what c++filt says
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
         "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> "
         ">(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"},
        {"_ZZZN2at6native12_GLOBAL__N_117where_kernel_implERNS_14TensorIteratorEENKUlvE_clEvENKUlvE7_clEv",
         "at::native::(anonymous namespace)::where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() const::"
         "{lambda()#9}::operator()() const"},
        {"_ZN7cutlass7Kernel2I53cutlass_80_tensorop_h16816gemm_256x128_32x3_nn_align8EEvNT_6ParamsE",
         "void cutlass::Kernel2<cutlass_80_tensorop_h16816gemm_256x128_32x3_nn_align8>("
         "cutlass_80_tensorop_h16816gemm_256x128_32x3_nn_align8::Params)"},
        {"_Z9mul_mat_qIL9ggml_type12ELi64ELi8ELb1EEvPKcS2_Pfiiiii",
         "void mul_mat_q<(ggml_type)12, 64, 8, true>(char const*, char const*, float*, int, int, int, int, int)"},
        {"_Z1fIJilPcEEvDpRKT_", "void f<int, long, char*>(int const&, long const&, char* const&)"},
        {"_Z1fIJEEvDpRKT_", "void f<>()"},
        {"_Z1fPFvPA4_iEM3FooKFvvERA3_A2_K3Bar",
         "f(void (*)(int (*) [4]), void (Foo::*)() const, Bar const (&) [3][2])"},
        {"_ZN3FoolsIiEEvv", "void Foo::operator<< <int>()"},
        {"_ZN3FooIiEC2ERKS0_", "Foo<int>::Foo(Foo<int> const&)"},
        {"_Z1fIXadL_ZN2ns1gEvEELb0ELln5ELf3f800000EEvv", "void f<&ns::g, false, -5l, (float)[3f800000]>()"},
        // expressions cost the signature
        {"_Z1fILi3EEvRAplT_Li1E_i", "f<3>"},
        {"_Z1fIiENSt9enable_ifIXsr7is_sameIT_iEE5valueEvE4typeES1_", "f<int>"},
        {"_Z1fILi3EEDTplT_Li1EEv", "f<3>"},
        {"_Z1fIXplLi1ELi2EEEvv", "_Z1fIXplLi1ELi2EEEvv"},
        {"_Z1f!", "_Z1f!"},
    };
    for (auto [mangled, name] : names)
        CHECK(demangle(mangled) == name);
    CHECK((demangle(std::string_view("_Z1fv\0", 6)) == std::string_view("_Z1fv\0", 6)));
}

TEST_CASE("names longer than the library takes are demangled", "[text]")
{
    std::string name = "_ZN7cutlass13device_kernelIJ", expected = "void cutlass::device_kernel<";
    for (int i = 0; i < 200; ++i) {
        name += i ? "S_I6half_tLi" + std::to_string(i) + "EE" : "4TileI6half_tLi0EE";
        expected += (i ? ", " : "") + ("Tile<half_t, " + std::to_string(i)) + ">";
    }
    // S_ is cutlass, S0_ the kernel, S1_ Tile, S2_ half_t.
    for (size_t at; (at = name.find("S_I6half_t")) != name.npos;)
        name.replace(at, 10, "S1_IS2_");
    name += "EEEvv";
    REQUIRE(name.size() > 1024);
    CHECK(demangle(name) == expected + " >()");
}

TEST_CASE("hostile names cost little", "[text]")
{
    CHECK(demangle(doubling_name(3)).size() > 200);
    for (int levels : {20, 30, 60, 500}) {
        std::string name = doubling_name(levels);
        CHECK(seconds_of([&] { CHECK(demangle(name) == name); }) < 1);
    }
    auto repeated = [](std::string_view part, size_t count) {
        std::string text;
        while (count-- > 0)
            text += part;
        return text;
    };
    const std::string names[] = {
        "_Z1f" + repeated("P", 8000) + "i",
        "_Z1fI" + repeated("1AI", 2000) + "i" + repeated("E", 2001) + "vv",
        "_Z1fIJ" + repeated("i", 500) + "EEv" + repeated("Dp", 3000) + "T_",
        "_Z1fIJ" + repeated("i", 500) + "EEv" + repeated("Dp1AI", 5) + "T_" + repeated("E", 5),
        "_Z1f" + repeated("1AIiE", 500) + repeated("RT_", 500),
        "_Z" + repeated("Z1fvEN", 1000) + "1xE",
        "_Z" + repeated("N", 8000),
        "_Z" + repeated("Z", 8000),
        "_Z1fI" + repeated("J", 8000),
        "_Z1f" + repeated("M1A", 2000),
        "_Z1fI" + repeated("L_Z1fI", 1000),
        "_Z1fI" + repeated("XadL_Z1fI", 800),
        "_Z" + repeated("Ul", 4000),
        "_Z" + repeated("cv", 4000),
        "_ZNSt" + repeated("cv", 4000),
        "_Z1fIiENSt9enable_ifIXsr16has_ScalarTrait4DeclES3_EE", // hangs __cxa_demangle of GCC 12
        "_Z9999999999999999999999999a",
        "_Z1fA99999999999999999999_i",
        "_Z1fSZZZZZZZZZZZZZZZZ_",
        "_Z1fIiEvT99999999999999999999_",
        std::string("_Z1f") + std::string(100000, 'i'),
    };
    for (const std::string& name : names)
        CHECK(seconds_of([&] { CHECK(demangle(name).size() <= 100004); }) < 1);

    std::mt19937 random(7);
    const std::string seeds[] = {
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
        "_ZZZN2at6native12_GLOBAL__N_117where_kernel_implERNS_14TensorIteratorEENKUlvE_clEvENKUlvE7_clEv",
        "_Z1fIJilPcEEvDpRKT_M3FooKFvvERA3_A2_K3BarPFvPA4_iE",
        doubling_name(8),
    };
    double slowest = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string name = seeds[random() % std::size(seeds)];
        for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
            size_t at = 2 + random() % (name.size() - 2);
            constexpr std::string_view letters = "_0123IJEPKRSTNZDpLXUlvifnAMFOCt.";
            switch (random() % 3) {
            case 0:
                name[at] = letters[random() % letters.size()];
                break;
            case 1:
                name.insert(at, name.substr(random() % name.size(), random() % 9));
                break;
            default:
                name.erase(at, random() % 4);
            }
        }
        slowest = std::max(slowest, seconds_of([&] { shorten_kernel(demangle(name), 40); }));
    }
    CHECK(slowest < 0.5);
}

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

TEST_CASE("shortening hostile names costs little", "[text]")
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
