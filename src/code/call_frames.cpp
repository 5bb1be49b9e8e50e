// SPDX-License-Identifier: Apache-2.0
#include "code/call_frames.hpp"

#include <algorithm>
#include <cstdlib>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <span>

namespace gpusnoop {
namespace {

constexpr size_t rows_max = 1 << 22; // maximum rows of the search table in .eh_frame_hdr; libtorch has 400,000

// Converts the DWARF expression of the caller's stack pointer (CFA) to a register and an offset. Returns false for
// other expressions. These occur in PLT entries and in functions that realign their stack.
bool read_base(Dwarf_Op* ops, size_t count, FrameRule& to)
{
    if (count != 1)
        return false;
    if (ops->atom == DW_OP_bregx) {
        to.base_register = ops->number;
        to.base_offset = static_cast<int64_t>(ops->number2);
    } else if (ops->atom >= DW_OP_breg0 && ops->atom <= DW_OP_breg31) {
        to.base_register = ops->atom - DW_OP_breg0;
        to.base_offset = static_cast<int64_t>(ops->number);
    } else {
        return false;
    }
    return to.base_register < FrameRegisters::count;
}

FrameRule::Saved read_saved(Dwarf_Frame* frame, size_t number)
{
    Dwarf_Op memory[3];
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_frame_register(frame, static_cast<int>(number), memory, &ops, &count))
        return {FrameRule::Saved::lost};
    if (count == 0)
        return {ops ? FrameRule::Saved::lost : FrameRule::Saved::unchanged};
    if (ops[0].atom != DW_OP_call_frame_cfa || count > 2 || (count == 2 && ops[1].atom != DW_OP_plus_uconst))
        return {FrameRule::Saved::lost};
    return {FrameRule::Saved::on_stack, count == 2 ? static_cast<int64_t>(ops[1].number) : 0};
}

} // namespace

void CallFrames::End::operator()(Dwarf_CFI_s* frames) const
{
    dwarf_cfi_end(frames);
}

// Reads .eh_frame_hdr version 1 with 32-bit offsets, as all linkers write it (LSB, "DWARF Extensions").
void CallFrames::read_search_table(const Elf& elf)
{
    const auto segment = std::ranges::find(elf.segments(), Elf64_Word{PT_GNU_EH_FRAME}, &Elf64_Phdr::p_type);
    if (segment == elf.segments().end())
        return;
    struct {
        uint8_t version, frame_encoding, count_encoding, table_encoding;
        int32_t frame;
        uint32_t count;
    } header;
    constexpr uint8_t udata4 = 0x03, sdata4_from_table = 0x3b;
    if (elf.read(segment->p_offset, {reinterpret_cast<uint8_t*>(&header), sizeof(header)}) != sizeof(header) ||
        header.version != 1 || header.count_encoding != udata4 || header.table_encoding != sdata4_from_table)
        return;
    table_.resize(std::min<size_t>({header.count, segment->p_filesz / sizeof(SearchRow), rows_max}));
    const size_t bytes = table_.size() * sizeof(SearchRow);
    if (elf.read(segment->p_offset + sizeof(header), {reinterpret_cast<uint8_t*>(table_.data()), bytes}) != bytes)
        table_.clear();
    table_address_ = segment->p_vaddr;
}

CallFrames::CallFrames(const Elf& elf) : frames_(dwarf_getcfi_elf(static_cast<::Elf*>(elf.handle())))
{
    read_search_table(elf);
}

std::optional<uint64_t> CallFrames::function_start(uint64_t address) const
{
    const auto offset = static_cast<int64_t>(address - table_address_);
    const auto next = std::ranges::upper_bound(table_, offset, {}, &SearchRow::start);
    if (next == table_.begin())
        return std::nullopt;
    return table_address_ + static_cast<uint64_t>(int64_t{std::prev(next)->start});
}

std::optional<FrameRule> CallFrames::rule(uint64_t address) const
{
    Dwarf_Frame* found = nullptr;
    if (!frames_ || dwarf_cfi_addrframe(frames_.get(), address, &found))
        return std::nullopt;
    const std::unique_ptr<Dwarf_Frame, decltype(&free)> frame(found, &free);
    FrameRule rule;
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    if (dwarf_frame_cfa(frame.get(), &ops, &count) || !read_base(ops, count, rule))
        return std::nullopt;
    using R = FrameRegisters;
    for (const size_t number : R::kept)
        rule.registers[number] = read_saved(frame.get(), number);
    FrameRule::Saved& saved = rule.registers[R::return_address] = read_saved(frame.get(), R::return_address);
    // "Unchanged" means that the return address is still in its register, as in a leaf function on arm64. On x86-64, a
    // call always pushes it onto the stack, so the rule is invalid.
    if (saved.kind == FrameRule::Saved::unchanged && R::return_address == R::ip)
        return std::nullopt;
    return rule;
}

} // namespace gpusnoop
