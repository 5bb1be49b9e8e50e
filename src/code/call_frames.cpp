// SPDX-License-Identifier: Apache-2.0
#include "code/call_frames.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <span>
#include <unistd.h>
#include <vector>

namespace gpusnoop {
namespace {

// The table that a search begins with: one row for each function, by address.
struct SearchRow {
    int32_t start; // from the table's own address
    int32_t entry;
};
constexpr size_t rows_max = 1 << 22; // libtorch has 400,000

// Only a register and an offset: what a PLT says, and what code says that moves its own stack, is left out.
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

struct CallFrames::Impl {
    ~Impl()
    {
        if (frames)
            dwarf_cfi_end(frames);
        if (elf)
            elf_end(elf);
    }
    void read_search_table();

    Fd file;
    ::Elf* elf = nullptr;
    Dwarf_CFI* frames = nullptr;
    uint64_t table_address = 0;
    std::vector<SearchRow> table;
};

// As every linker writes it: .eh_frame_hdr, version 1, with offsets of 32 bits (LSB, "DWARF Extensions").
void CallFrames::Impl::read_search_table()
{
    size_t count = 0;
    if (elf_getphdrnum(elf, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf, static_cast<int>(i), &segment) || segment.p_type != PT_GNU_EH_FRAME)
            continue;
        struct {
            uint8_t version, frame_encoding, count_encoding, table_encoding;
            int32_t frame;
            uint32_t count;
        } header;
        constexpr uint8_t udata4 = 0x03, sdata4_from_table = 0x3b;
        if (pread(file.get(), &header, sizeof(header), static_cast<off_t>(segment.p_offset)) != sizeof(header) ||
            header.version != 1 || header.count_encoding != udata4 || header.table_encoding != sdata4_from_table)
            return;
        const size_t rows = std::min<size_t>({header.count, segment.p_filesz / sizeof(SearchRow), rows_max});
        table.resize(rows);
        const auto bytes = static_cast<ssize_t>(rows * sizeof(SearchRow));
        if (pread(file.get(), table.data(), rows * sizeof(SearchRow),
                  static_cast<off_t>(segment.p_offset + sizeof(header))) != bytes)
            table.clear();
        table_address = segment.p_vaddr;
        return;
    }
}

CallFrames::CallFrames(Fd file) : impl_(std::make_unique<Impl>())
{
    elf_version(EV_CURRENT);
    impl_->file = std::move(file);
    impl_->elf = elf_begin(impl_->file.get(), ELF_C_READ, nullptr);
    if (!impl_->elf)
        return;
    impl_->read_search_table();
    impl_->frames = dwarf_getcfi_elf(impl_->elf);
}

CallFrames::~CallFrames() = default;

std::optional<uint64_t> CallFrames::function_start(uint64_t address) const
{
    const auto offset = static_cast<int64_t>(address - impl_->table_address);
    const auto behind =
        std::ranges::upper_bound(impl_->table, offset, {}, [](const SearchRow& row) { return row.start; });
    if (behind == impl_->table.begin())
        return std::nullopt;
    return impl_->table_address + static_cast<uint64_t>(int64_t{std::prev(behind)->start});
}

std::optional<FrameRule> CallFrames::rule(uint64_t address) const
{
    Dwarf_Frame* found = nullptr;
    if (!impl_->frames || dwarf_cfi_addrframe(impl_->frames, address, &found))
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
    // Unless it is in a register, as a function that calls nothing has it there on arm64.
    if (saved.kind == FrameRule::Saved::unchanged && R::return_address == R::ip)
        return std::nullopt;
    return rule;
}

} // namespace gpusnoop
