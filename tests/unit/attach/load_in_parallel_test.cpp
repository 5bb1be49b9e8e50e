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

void need_bpf_in_turn()
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

TEST_CASE("programs that are loaded together are those that are loaded one after the other")
{
    need_bpf_in_turn();
    auto together = gpusnoop::open_skeleton<deep_bpf>(), in_turn = gpusnoop::open_skeleton<deep_bpf>();
    for (auto* skeleton : {together.get(), in_turn.get()}) {
        bpf_program__set_autoload(skeleton->progs.as_all_programs, true);
        bpf_program__set_autoload(skeleton->progs.without_tail_call, true);
    }
    REQUIRE(load_in_parallel([&] { return deep_bpf::load(together.get()); }) == 0);
    REQUIRE(deep_bpf::load(in_turn.get()) == 0);
    const auto& these = together->progs;
    const auto& those = in_turn->progs;
    constexpr uint32_t of_nothing = 2;
    CHECK(verified_instructions(these.as_all_programs) > of_nothing);
    CHECK(verified_instructions(these.as_all_programs) == verified_instructions(those.as_all_programs));
    CHECK(verified_instructions(these.without_tail_call) == verified_instructions(those.without_tail_call));
}

TEST_CASE("a program that the kernel refuses is refused where it is loaded with others")
{
    need_bpf_in_turn();
    auto skeleton = gpusnoop::open_skeleton<refused_bpf>();
    bpf_program__set_autoload(skeleton->progs.reads_anywhere, true);
    CHECK(load_in_parallel([&] { return refused_bpf::load(skeleton.get()); }) < 0);
}
