// SPDX-License-Identifier: Apache-2.0
#include "attach/programs.hpp"

#include "base/bpf_map.hpp"
#include "deep.skel.h"
#include "tests/unit/attach/bpf_here.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <sys/utsname.h>
#include <unistd.h>

namespace {

using gpusnoop::Machine;

bool kernel_has_private_stacks()
{
    constexpr int since = gpusnoop::host == Machine::arm64 ? 17 : 13;
    utsname name{};
    uname(&name);
    int major = 0, minor = 0;
    return sscanf(name.release, "%d.%d", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= since));
}

} // namespace

TEST_CASE("the use of a private stack is detected in machine code")
{
    // Machine code from Linux 6.18: endbr64, push rbp, mov rbp, rsp, movabs r9, ..., add r9, gs:[...]
    constexpr std::array<unsigned char, 26> code = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x49,
                                                    0xb9, 0x10, 0x9c, 0x20, 0xc4, 0xff, 0x7d, 0x00, 0x00,
                                                    0x65, 0x4c, 0x03, 0x0c, 0x25, 0x28, 0xf0, 0xff};
    const auto bytes = std::as_bytes(std::span(code));
    CHECK(gpusnoop::uses_private_stack(bytes, Machine::x86_64));
    CHECK_FALSE(gpusnoop::uses_private_stack(bytes.first(22), Machine::x86_64));
    CHECK_FALSE(gpusnoop::uses_private_stack({}, Machine::x86_64));
    // mov x27, #0x8010; movk x27, #0xa000, lsl 16; mrs x10, tpidr_el1; add x27, x27, x10; add x25, x27, #0x20
    constexpr std::array<uint32_t, 5> words = {0xd290021b, 0xf2b4001b, 0xd538d08a, 0x8b0a037b, 0x91008379};
    CHECK(gpusnoop::uses_private_stack(std::as_bytes(std::span(words)), Machine::arm64));
    CHECK_FALSE(gpusnoop::uses_private_stack(std::as_bytes(std::span(words).first(3)), Machine::arm64));
    CHECK_FALSE(gpusnoop::uses_private_stack(bytes, Machine::arm64));
}

TEST_CASE("the tail call at the start of the tools' programs keeps them on the task's stack")
{
    need_bpf();
    auto skeleton = gpusnoop::open_skeleton<deep_bpf>();
    SECTION("with the tail call, which is never made")
    {
        bpf_program__set_autoload(skeleton->progs.with_tail_call, true);
        REQUIRE(deep_bpf::load(skeleton.get()) == 0);
        CHECK_FALSE(gpusnoop::may_use_private_stack(skeleton->obj));
    }
    SECTION("without the tail call, they use a private stack")
    {
        bpf_program__set_autoload(skeleton->progs.without_tail_call, true);
        REQUIRE(deep_bpf::load(skeleton.get()) == 0);
        CHECK(gpusnoop::may_use_private_stack(skeleton->obj) == kernel_has_private_stacks());
    }
}
