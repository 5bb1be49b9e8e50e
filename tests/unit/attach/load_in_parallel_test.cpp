// SPDX-License-Identifier: Apache-2.0
#include "attach/load_plan.hpp"

#include "attach/refusal.hpp"
#include "base/bpf_map.hpp"
#include "deep.skel.h"
#include "refused.skel.h"
#include "tests/unit/attach/bpf_here.hpp"

#include <bpf/bpf.h>
#include <catch2/catch_test_macros.hpp>
#include <unistd.h>

using gpusnoop::load_in_parallel;

namespace {

void need_bpf_and_handler()
{
    need_bpf();
    static const bool once = [] {
        gpusnoop::set_load_handler(false);
        return true;
    }();
    REQUIRE(once);
}

uint32_t verified_instructions(const bpf_program* program)
{
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    REQUIRE(bpf_prog_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0);
    return info.verified_insns;
}

} // namespace

TEST_CASE("programs loaded in parallel are the same as programs loaded serially")
{
    need_bpf_and_handler();
    auto parallel = gpusnoop::open_skeleton<deep_bpf>(), serial = gpusnoop::open_skeleton<deep_bpf>();
    for (auto* skeleton : {parallel.get(), serial.get()}) {
        bpf_program__set_autoload(skeleton->progs.with_tail_call, true);
        bpf_program__set_autoload(skeleton->progs.without_tail_call, true);
    }
    REQUIRE(load_in_parallel([&] { return deep_bpf::load(parallel.get()); }) == 0);
    REQUIRE(deep_bpf::load(serial.get()) == 0);
    const auto& parallel_programs = parallel->progs;
    const auto& serial_programs = serial->progs;
    constexpr uint32_t stub_instructions = 2;
    CHECK(verified_instructions(parallel_programs.with_tail_call) > stub_instructions);
    CHECK(verified_instructions(parallel_programs.with_tail_call) ==
          verified_instructions(serial_programs.with_tail_call));
    CHECK(verified_instructions(parallel_programs.without_tail_call) ==
          verified_instructions(serial_programs.without_tail_call));
}

TEST_CASE("a program that the kernel refuses is also refused in a parallel load")
{
    need_bpf_and_handler();
    auto skeleton = gpusnoop::open_skeleton<refused_bpf>();
    bpf_program__set_autoload(skeleton->progs.reads_anywhere, true);
    CHECK(load_in_parallel([&] { return refused_bpf::load(skeleton.get()); }) < 0);
}
