// SPDX-License-Identifier: Apache-2.0
// Names of real kernels, shortened as in tables.
#include "names/demangle.hpp"
#include "names/kernel_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

using namespace gpusnoop;

namespace {

constexpr std::pair<std::string_view, std::string_view> kernels[] = {
#define KERNEL(short_form, symbol) {short_form, symbol},
#include "tests/unit/names/kernel_names.def"
};

} // namespace

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
