// SPDX-License-Identifier: Apache-2.0
#include "attach/refusal.hpp"

#include "base/bpf_map.hpp"
#include "refused.skel.h"
#include "tests/unit/attach/bpf_here.hpp"

#include <bpf/bpf.h>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <functional>
#include <unistd.h>
#include <vector>

using namespace gpusnoop;

namespace {

// Loads the object, which this kernel must refuse, and returns the refusal as reported by libbpf.
Refusal refused_by_the_kernel(const std::function<void(refused_bpf&)>& prepare)
{
    auto skeleton = open_skeleton<refused_bpf>();
    prepare(*skeleton);
    const LoadLog log;
    const int error = refused_bpf::load(skeleton.get());
    REQUIRE(error < 0);
    return refusal_of(-error, log.text());
}

template<int kind = 0>
constexpr bpf_insn call(int32_t function)
{
    return {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = kind, .off = 0, .imm = function};
}

} // namespace

TEST_CASE("the cause of a refusal by this kernel is found", "[long]")
{
    need_bpf();
    const auto refused_program = [](const char* name) {
        return refused_by_the_kernel([name](refused_bpf& object) {
            bpf_program__set_autoload(bpf_object__find_program_by_name(object.obj, name), true);
        });
    };
    Refusal refusal = refused_program("calls_nothing"); // a missing kernel function
    CHECK(refusal.cause == RefusalCause::function);
    CHECK(refusal.program == "calls_nothing");
    CHECK(refusal.detail == "bpf_no_such_function");
    refusal = refused_program("reads_anywhere");
    CHECK(refusal.cause == RefusalCause::verifier);
    CHECK(refusal.program == "reads_anywhere");
    CHECK(refusal.detail.find("invalid mem access") != std::string::npos);
    refusal = refused_program("loops_too_long");
    CHECK(refusal.cause == RefusalCause::too_large);
    CHECK(refusal.program == "loops_too_long");
    CHECK(refusal.reason().starts_with("the verifier gave up after 100000"));
    refusal = refused_by_the_kernel(
        [](refused_bpf& object) { bpf_map__set_type(object.maps.invalid_map, BPF_MAP_TYPE_UNSPEC); });
    CHECK(refusal.cause == RefusalCause::map);
    CHECK(refusal.program.empty());
    CHECK(refusal.detail == "invalid_map");
}

TEST_CASE("the logs of all versions of libbpf are parsed")
{
    // Versions 1.1 to 1.4 of libbpf print the text of the error; later versions print its name.
    for (const char* error : {"Invalid argument", "-EINVAL"}) {
        const std::string log = std::string("libbpf: prog 'launch_session': BPF program load failed: ") + error +
                                "\nlibbpf: prog 'launch_session': -- BEGIN PROG LOAD LOG --\n"
                                "12: (85) call bpf_session_is_return#0\n"
                                "kfunc 'bpf_session_is_return' is referenced but wasn't resolved\n"
                                "processed 12 insns (limit 1000000) max_states_per_insn 0\n-- END PROG LOAD LOG --\n"
                                "libbpf: prog 'launch_session': failed to load: -22\n";
        const Refusal refusal = refusal_of(EINVAL, log);
        CHECK(refusal.cause == RefusalCause::function);
        CHECK(refusal.program == "launch_session");
        CHECK(refusal.detail == "bpf_session_is_return");
        CHECK(refusal.text() ==
              "the kernel refused the BPF program launch_session: it calls bpf_session_is_return, which "
              "this kernel lacks or has in a different form");
    }
    for (const char* log : {"libbpf: map 'threads': failed to create: Invalid argument(-22)\n",
                            "libbpf: map 'threads': failed to create: -EINVAL\n"}) {
        const Refusal refusal = refusal_of(EINVAL, log);
        CHECK(refusal.cause == RefusalCause::map);
        CHECK(refusal.detail == "threads");
    }
    const Refusal locked = refusal_of(
        EPERM, "libbpf: permission error while running as root; try raising 'ulimit -l'? current value: 64.0 KiB\n");
    CHECK(locked.cause == RefusalCause::memory);
    CHECK(locked.reason() == "the limit of locked memory is too low");
    CHECK(refusal_of(ENOMEM, "libbpf: map 'calls': failed to create: Cannot allocate memory(-12)\n").detail == "calls");
    CHECK(refusal_of(EPERM, "").cause == RefusalCause::permission);
    CHECK(refusal_of(EPERM, "").text() ==
          "the kernel refused the BPF programs: BPF is not permitted here: Operation not "
          "permitted");
    CHECK(refusal_of(EIO, "").text() == "the kernel refused the BPF programs: Input/output error");
}

TEST_CASE("calls of bpf_probe_read become calls of bpf_probe_read_user, other instructions do not change")
{
    const bpf_insn constant = {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 4};
    std::vector<bpf_insn> code{call(BPF_FUNC_probe_read),
                               call(BPF_FUNC_probe_read_str),
                               call(BPF_FUNC_ktime_get_ns),
                               call<BPF_PSEUDO_CALL>(BPF_FUNC_probe_read),
                               call<BPF_PSEUDO_KFUNC_CALL>(BPF_FUNC_probe_read),
                               constant};
    restore_user_reads(code);
    std::vector<int32_t> calls;
    for (const bpf_insn& one : code)
        calls.push_back(one.imm);
    CHECK(calls == std::vector<int32_t>{BPF_FUNC_probe_read_user, BPF_FUNC_probe_read_user_str, BPF_FUNC_ktime_get_ns,
                                        BPF_FUNC_probe_read, BPF_FUNC_probe_read, 4});
}
