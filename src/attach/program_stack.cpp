// SPDX-License-Identifier: Apache-2.0
#include "attach/program_stack.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace gpusnoop {
namespace {

// add r9, gs:[this_cpu_off], of emit_priv_frame_ptr() (6.13, 7d1cd70d4b16). No other code of a BPF program uses r9.
constexpr std::array adds_cpu_to_r9 = {std::byte{0x65}, std::byte{0x4c}, std::byte{0x03}, std::byte{0x0c},
                                       std::byte{0x25}};
// add x27, x27, x10, of emit_percpu_ptr() (6.17). Before, x27 was for addresses on the stack, by a constant.
constexpr std::array adds_cpu_to_x27 = {std::byte{0x7b}, std::byte{0x03}, std::byte{0x0a}, std::byte{0x8b}};

// The code of all functions of a program; empty where the kernel does not show it (kptr_restrict), or has made none.
std::span<const std::byte> read_code(int program_fd, std::vector<std::byte>& room)
{
    for (;;) {
        bpf_prog_info info{};
        info.jited_prog_insns = reinterpret_cast<uintptr_t>(room.data());
        info.jited_prog_len = static_cast<uint32_t>(room.size());
        uint32_t size = sizeof(info);
        if (bpf_prog_get_info_by_fd(program_fd, &info, &size) != 0 || !info.jited_prog_insns)
            return {};
        if (info.jited_prog_len <= room.size())
            return std::span(room).first(info.jited_prog_len);
        room.resize(info.jited_prog_len);
    }
}

} // namespace

bool takes_stack_of_cpu(std::span<const std::byte> code, Machine machine)
{
    const std::span<const std::byte> adds_cpu = machine == Machine::arm64 ? std::span<const std::byte>(adds_cpu_to_x27)
                                                                          : std::span<const std::byte>(adds_cpu_to_r9);
    return !std::ranges::search(code, adds_cpu).empty();
}

bool may_have_stack_of_cpu(const bpf_object* object)
{
    std::vector<std::byte> room(16 << 10);
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object) {
        if (bpf_program__fd(program) < 0 || std::string_view(bpf_program__section_name(program)) != "uprobe")
            continue;
        const auto code = read_code(bpf_program__fd(program), room);
        if (code.empty() || takes_stack_of_cpu(code))
            return true;
    }
    return false;
}

} // namespace gpusnoop
