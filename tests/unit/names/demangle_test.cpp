// SPDX-License-Identifier: Apache-2.0
#include "names/demangle.hpp"

#include "base/error.hpp"
#include "names/kernel_names.hpp"
#include "tests/unit/base/sleeping_child.hpp"

#include <chrono>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <string>
#include <thread>
#include <vector>

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

double seconds_of(auto work)
{
    std::clock_t start = std::clock(); // CPU time, as the machine may be busy
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// A name with nested function types, each of which contains the previous one twice: the demangled name doubles with
// every level.
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

TEST_CASE("names are demangled", "[demangle]")
{
    const std::pair<const char*, const char*> names[] = {
        {"main", "main"},
        {"", ""},
        {"f", "f"}, // __cxa_demangle() would read it as a type
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
        // as c++filt prints them
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
        {"_Z1fILi3EEvRAplT_Li1E_i", "void f<3>(int (&) [(3)+(1)])"},
        {"_Z1fIiENSt9enable_ifIXsr7is_sameIT_iEE5valueEvE4typeES1_",
         "std::enable_if<is_same<int, int>::value, void>::type f<int>(int)"},
        {"_Z1fILi3EEDTplT_Li1EEv", "decltype ((3)+(1)) f<3>()"},
        {"_Z1fIXplLi1ELi2EEEvv", "void f<(1)+(2)>()"},
        {"_Z1f!", "_Z1f!"},
    };
    for (auto [mangled, name] : names)
        CHECK(demangle(mangled) == name);
    CHECK((demangle(std::string_view("_Z1fv\0", 6)) == std::string_view("_Z1fv\0", 6)));
}

TEST_CASE("at least the scopes are demangled in names that are too long for the demangling library", "[demangle]")
{
    std::string arguments = "J4TileI6half_tLi0EE";
    for (int i = 1; i < 200; ++i)
        arguments += "S1_IS2_Li" + std::to_string(i) + "EE";
    arguments += "EEEvv";
    REQUIRE(arguments.size() > 1024);
    CHECK(demangle("_ZN7cutlass13device_kernelI" + arguments) == "cutlass::device_kernel<" + arguments + ">");
    CHECK(demangle("_ZN12_GLOBAL__N_16kernelI" + arguments) == "(anonymous namespace)::kernel<" + arguments + ">");
    CHECK(demangle("_Z6kernelI" + arguments) == "kernel<" + arguments + ">");
    const std::string letters(1016, 'k');
    CHECK(demangle("_Z1016" + letters + "Pfi") == letters + "(float*, int)");
    CHECK(demangle("_ZN2ns1016" + letters + "C2ERKS0_") ==
          "ns::" + letters + "::" + letters + "(ns::" + letters + " const&)");
    for (const std::string start : {"_ZN", "_Z", "_ZN7cutlass", "_Z99999", "_Z0", "_ZN99999999999999999999a"})
        CHECK(demangle(start + arguments) == start + arguments);
}

TEST_CASE("hostile names keep only the names of their own process mangled", "[demangle]")
{
    std::string warnings;
    const WarningRedirect here([&warnings](const std::string& text) { warnings += text; });
    const SleepingChild hostile;
    const ImageId its{.pid = static_cast<uint32_t>(hostile.pid()), .serial = 1};
    const ImageId ours{.pid = static_cast<uint32_t>(getpid()), .serial = 2};
    KernelNames names("");
    const auto learn = [&](const ImageId& image, uint64_t handle, std::string_view name) {
        name_record record{};
        record.source = NAME_REGISTERED;
        record.image = image;
        record.handle = handle;
        record.length = static_cast<int32_t>(name.size());
        std::vector<uint64_t> bytes((sizeof(record) + name.size() + 7) / 8);
        memcpy(bytes.data(), &record, sizeof(record));
        memcpy(reinterpret_cast<char*>(bytes.data()) + sizeof(record), name.data(), name.size());
        names.learn(*reinterpret_cast<const name_record*>(bytes.data()), sizeof(record) + name.size());
    };
    const std::string endless = "_Z1fIiENSt9enable_ifIXsr16has_ScalarTrait4DeclES3_EE"; // loop in GCC 12's demangler
    const std::string all_hostile[] = {doubling_name(60), doubling_name(500), endless};
    for (uint64_t handle = 0; handle < 3; handle++)
        learn(its, handle, all_hostile[handle]);
    learn(ours, 1, "_Z6vecaddPfPKfi");
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (names.name(ours, 1).value().is_mangled && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(100ms);
        names.tick();
    }
    CHECK(names.name(ours, 1).value().text == "vecadd(float*, float const*, int)");
    CHECK(names.name(its, 2).value().text == endless);
    CHECK((warnings.empty() ||
           warnings.find(fmt::format("process {}: it cannot be read within 3 s", hostile.pid())) != std::string::npos));
}

TEST_CASE("rejecting hostile names takes little time", "[demangle]")
{
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
        "_Z9999999999999999999999999a",
        "_Z1fA99999999999999999999_i",
        "_Z1fSZZZZZZZZZZZZZZZZ_",
        "_Z1fIiEvT99999999999999999999_",
        std::string("_Z1f") + std::string(100000, 'i'),
    };
    for (const std::string& name : names)
        CHECK(seconds_of([&] { CHECK(demangle(name).size() <= 100004); }) < 1);
}
