// SPDX-License-Identifier: Apache-2.0
#include "calibrate.hpp"

#include "calibrate.skel.h"
#include "fd.hpp"
#include "process.hpp"
#include "skeleton.hpp"

#include <algorithm>
#include <bpf/libbpf.h>
#include <unistd.h>

// Begins with an instruction that the kernel emulates, as the functions of CUDA libraries do.
asm(R"(
    .pushsection .text
    .type gpusnoop_do_nothing, @function
gpusnoop_do_nothing:
    push %rbp
    pop %rbp
    ret
    .size gpusnoop_do_nothing, . - gpusnoop_do_nothing
    .popsection
)");
extern "C" void gpusnoop_do_nothing();

namespace gpusnoop {
namespace {

struct LinkDeleter {
    void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Link = std::unique_ptr<bpf_link, LinkDeleter>;

constexpr const char* own_file = "/proc/self/exe";

std::optional<uint64_t> file_offset(uint64_t address)
{
    for (const Mapping& mapping : mappings(getpid()))
        if (address >= mapping.start && address < mapping.end)
            return address - mapping.start + mapping.file_offset;
    return std::nullopt;
}

// Calls the function often enough to fill the samples.
std::optional<uint64_t> median_of(calibrate_bpf& skeleton)
{
    auto& data = *skeleton.bss;
    for (size_t i = 0; i < std::size(data.samples); i++)
        gpusnoop_do_nothing();
    if (!data.taken)
        return std::nullopt;
    auto* middle = data.samples + data.taken / 2;
    std::nth_element(data.samples, middle, data.samples + data.taken);
    return *middle;
}

} // namespace

std::optional<uint64_t> duration_floor_ns(Tier tier)
{
    auto offset = file_offset(reinterpret_cast<uint64_t>(&gpusnoop_do_nothing));
    auto skeleton = open_skeleton<calibrate_bpf>();
    auto& programs = skeleton->progs;
    const bool session = tier == Tier::session;
    bpf_program__set_autoload(programs.calibrate_session, session);
    bpf_program__set_autoload(programs.calibrate_entry, !session);
    bpf_program__set_autoload(programs.calibrate_return, !session);
    bpf_program__set_expected_attach_type(programs.calibrate_session,
                                          static_cast<bpf_attach_type>(uprobe_session_attach_type));
    if (!offset || calibrate_bpf::load(skeleton.get()))
        return std::nullopt;
    if (session) {
        Fd link(create_link({.program = bpf_program__fd(programs.calibrate_session),
                             .attach_type = uprobe_session_attach_type,
                             .path = own_file,
                             .offsets = &*offset,
                             .count = 1,
                             .pid = getpid()}));
        return link ? median_of(*skeleton) : std::nullopt;
    }
    Link on_return(bpf_program__attach_uprobe(programs.calibrate_return, true, getpid(), own_file, *offset));
    Link on_entry(bpf_program__attach_uprobe(programs.calibrate_entry, false, getpid(), own_file, *offset));
    return on_return && on_entry ? median_of(*skeleton) : std::nullopt;
}

} // namespace gpusnoop
