// SPDX-License-Identifier: Apache-2.0
#include "code/elf_image.hpp"

#include "base/machine.hpp"
#include "code/decoder.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace gpusnoop {

namespace {

constexpr uint64_t block_size = 4096;
constexpr size_t blocks_max = 512;             // cached blocks per file; limited because hundreds of files may be open
constexpr uint64_t dynamic_max = 4096;         // maximum entries of the dynamic section; real files have about thirty
constexpr uint64_t relocations_max = 16 << 20; // maximum relocations per table; cuBLASLt 13.0 has 375,000
constexpr size_t found_max = 64;

} // namespace

ElfImage::ElfImage(const Elf& elf) : elf_(elf)
{
    const auto segments = elf.segments();
    const auto dynamic = std::ranges::find(segments, Elf64_Word{PT_DYNAMIC}, &Elf64_Phdr::p_type);
    if (dynamic == segments.end())
        return;
    const uint64_t entries = std::min<uint64_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), dynamic_max);
    for (uint64_t i = 0; i < entries; i++) {
        Elf64_Dyn entry{};
        if (!load(dynamic->p_vaddr + i * sizeof(entry), entry) || entry.d_tag == DT_NULL)
            break;
        dynamic_.emplace(entry.d_tag, entry.d_un.d_val);
    }
}

std::optional<uint64_t> ElfImage::dynamic(int64_t tag) const
{
    const auto found = dynamic_.find(tag);
    return found != dynamic_.end() ? std::optional(found->second) : std::nullopt;
}

bool ElfImage::within(uint64_t address, uint32_t flag) const
{
    return std::ranges::any_of(elf_.segments(), [&](const Elf64_Phdr& s) {
        return s.p_type == PT_LOAD && (s.p_flags & flag) && address >= s.p_vaddr && address - s.p_vaddr < s.p_memsz;
    });
}

const std::vector<uint8_t>& ElfImage::block(uint64_t number) const
{
    if (const auto known = blocks_.find(number); known != blocks_.end())
        return known->second;
    if (blocks_.size() >= blocks_max)
        blocks_.clear();
    return blocks_[number] = elf_.bytes(number * block_size, block_size);
}

size_t ElfImage::read(uint64_t address, std::span<uint8_t> to) const
{
    for (const Elf64_Phdr& s : elf_.segments()) {
        if (s.p_type != PT_LOAD || address < s.p_vaddr || address - s.p_vaddr >= s.p_filesz)
            continue;
        const uint64_t skipped = address - s.p_vaddr;
        const uint64_t size = std::min<uint64_t>(to.size(), s.p_filesz - skipped);
        for (uint64_t done = 0; done < size;) {
            const uint64_t offset = s.p_offset + skipped + done;
            const std::vector<uint8_t>& from = block(offset / block_size);
            const uint64_t start = offset % block_size;
            if (start >= from.size())
                return done; // the file has been truncated in the meantime
            const uint64_t part = std::min(size - done, from.size() - start);
            std::copy_n(from.begin() + static_cast<ptrdiff_t>(start), part, to.begin() + static_cast<ptrdiff_t>(done));
            done += part;
        }
        return size;
    }
    return 0;
}

std::string ElfImage::string_at(uint64_t address, size_t max) const
{
    std::string text;
    uint8_t piece[256];
    while (text.size() <= max) {
        const size_t got = read(address + text.size(), piece);
        const auto* const end = std::find(piece, piece + got, 0);
        text.append(reinterpret_cast<const char*>(piece), static_cast<size_t>(end - piece));
        if (end != piece + got)
            return text.size() <= max ? text : "";
        if (got < sizeof(piece))
            return "";
    }
    return "";
}

void ElfImage::each_relocation(const std::function<void(const Elf64_Rela&)>& found) const
{
    constexpr std::pair<int64_t, int64_t> tables[] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
    for (const auto& [tag, size_tag] : tables) {
        const auto start = dynamic(tag), size = dynamic(size_tag);
        if (!start || !size)
            continue;
        uint64_t left = std::min<uint64_t>(*size / sizeof(Elf64_Rela), relocations_max);
        std::vector<Elf64_Rela> piece(1024);
        for (uint64_t at = *start; left > 0;) {
            const uint64_t bytes = std::min<uint64_t>(left, piece.size()) * sizeof(Elf64_Rela);
            const size_t got = read(at, {reinterpret_cast<uint8_t*>(piece.data()), bytes}) / sizeof(Elf64_Rela);
            if (got == 0)
                break;
            std::for_each_n(piece.begin(), got, found);
            at += got * sizeof(Elf64_Rela);
            left -= got;
        }
    }
}

bool ElfImage::symbol(uint64_t index, Elf64_Sym& to) const
{
    const auto table = dynamic(DT_SYMTAB);
    return table && load(*table + index * sizeof(Elf64_Sym), to);
}

std::vector<std::vector<uint64_t>> ElfImage::slots(std::span<const std::string_view> names) const
{
    std::vector<std::vector<uint64_t>> found(names.size());
    const auto strings = dynamic(DT_STRTAB);
    if (!strings)
        return found;
    each_relocation([&](const Elf64_Rela& r) {
        const uint64_t type = ELF64_R_TYPE(r.r_info);
        Elf64_Sym s{};
        if ((type != host_elf.jump_slot && type != host_elf.global) || !symbol(ELF64_R_SYM(r.r_info), s))
            return;
        for (size_t i = 0; i < names.size(); i++) {
            char name[64]{};
            const size_t size = std::min(names[i].size() + 1, sizeof(name)); // includes the terminating zero
            if (read(*strings + s.st_name, {reinterpret_cast<uint8_t*>(name), size}) == size &&
                std::string_view(name, size - 1) == names[i] && name[size - 1] == '\0' && found[i].size() < found_max)
                found[i].push_back(r.r_offset);
        }
    });
    return found;
}

std::unordered_map<uint64_t, uint64_t> ElfImage::pointers(std::span<const uint64_t> addresses) const
{
    std::unordered_map<uint64_t, uint64_t> found;
    if (addresses.empty())
        return found;
    // For packed relative relocations (RELR), and in programs that are not relocated, the file itself contains the
    // pointer.
    for (const uint64_t address : addresses)
        if (uint64_t value = 0; load(address, value) && value != 0)
            found[address] = value;
    const std::unordered_set<uint64_t> wanted(addresses.begin(), addresses.end());
    each_relocation([&](const Elf64_Rela& r) {
        if (!wanted.contains(r.r_offset))
            return;
        Elf64_Sym s{};
        const uint64_t type = ELF64_R_TYPE(r.r_info);
        if (type == host_elf.relative)
            found[r.r_offset] = static_cast<uint64_t>(r.r_addend);
        else if ((type == host_elf.global || type == host_elf.absolute) && symbol(ELF64_R_SYM(r.r_info), s) &&
                 s.st_shndx != SHN_UNDEF)
            found[r.r_offset] = s.st_value + (type == host_elf.absolute ? static_cast<uint64_t>(r.r_addend) : 0);
        else
            found.erase(r.r_offset);
    });
    return found;
}

namespace {

// Rates how well a segment matches a mapping. The most significant criterion comes first.
struct Fit {
    // The segment's pages include the whole mapping. mprotect() can split a mapping, but not extend it.
    bool covers = false;
    // Either both the segment and the mapping are executable, or neither is. Ranks below `covers`, because
    // READ_IMPLIES_EXEC and mprotect() may have changed the mapping's permissions.
    bool same_permission = false;
    // The segment's bytes include the address. This decides between two segments that share a page and have equal
    // permissions.
    bool contains = false;
    auto operator<=>(const Fit&) const = default;
};

} // namespace

std::optional<uint64_t> load_bias(std::span<const Elf64_Phdr> segments, const Mapping& mapping, uint64_t address)
{
    const uint64_t page = machine::page_size();
    const uint64_t offset = mapping.file_offset + (address - mapping.start);
    const uint64_t mapping_end = mapping.file_offset + (mapping.end - mapping.start);
    std::optional<uint64_t> bias;
    Fit best;
    for (const Elf64_Phdr& s : segments) {
        const uint64_t bytes_end = s.p_offset + s.p_filesz;
        if (s.p_type != PT_LOAD || bytes_end <= s.p_offset || bytes_end > UINT64_MAX - page)
            continue;
        const uint64_t first_page = s.p_offset / page * page, pages_end = (bytes_end + page - 1) / page * page;
        if (offset < first_page || offset >= pages_end)
            continue;
        const Fit fit{.covers = mapping.file_offset >= first_page && mapping_end <= pages_end,
                      .same_permission = ((s.p_flags & PF_X) != 0) == mapping.executable,
                      .contains = offset >= s.p_offset && offset < bytes_end};
        if (!bias || fit > best) {
            best = fit;
            bias = address - (s.p_vaddr + (offset - s.p_offset));
        }
    }
    return bias;
}

namespace {

constexpr uint64_t max_image_symbols = 1 << 20;
constexpr uint64_t max_strings = 64 << 20;

// The number of dynamic symbols is stored only in the hash table.
uint64_t count_by_hash(const ElfImage& file, uint64_t address)
{
    const auto header = file.at<uint32_t>(address, 2); // the number of buckets, and the number of symbols
    return header.size() == 2 ? std::min<uint64_t>(header[1], max_image_symbols) : 0;
}

// Each bucket contains the first symbol of a chain. Bit 0 of a hash marks the last symbol of a chain.
uint64_t count_by_gnu_hash(const ElfImage& file, uint64_t address)
{
    const auto header =
        file.at<uint32_t>(address, 4); // number of buckets, first hashed symbol, words of the Bloom filter, shift
    if (header.size() != 4 || header[0] > max_image_symbols || header[2] > max_image_symbols)
        return 0;
    const uint64_t buckets_at = address + sizeof(uint32_t) * 4 + sizeof(uint64_t) * header[2];
    const auto buckets = file.at<uint32_t>(buckets_at, header[0]);
    const uint64_t last = buckets.empty() ? 0 : *std::ranges::max_element(buckets);
    if (last < header[1] || last > max_image_symbols)
        return 0;
    const uint64_t chains_at = buckets_at + sizeof(uint32_t) * header[0];
    const auto chain = file.at<uint32_t>(chains_at + sizeof(uint32_t) * (last - header[1]), max_image_symbols - last);
    const auto end = std::ranges::find_if(chain, [](uint32_t hash) { return hash & 1; });
    return end != chain.end() ? last + static_cast<uint64_t>(end - chain.begin()) + 1 : 0;
}

} // namespace

DynamicSymbols dynamic_symbols(const Elf& elf)
{
    const ElfImage image(elf);
    const auto symbols = image.dynamic(DT_SYMTAB), strings = image.dynamic(DT_STRTAB);
    const uint64_t strings_size = image.dynamic(DT_STRSZ).value_or(0);
    if (!symbols || !strings || strings_size > max_strings)
        return {};
    uint64_t count = 0;
    if (const auto hash = image.dynamic(DT_HASH))
        count = count_by_hash(image, *hash);
    else if (const auto gnu_hash = image.dynamic(DT_GNU_HASH))
        count = count_by_gnu_hash(image, *gnu_hash);
    const std::vector<char> bytes = image.at<char>(*strings, strings_size);
    return {.symbols = image.at<Elf64_Sym>(*symbols, count),
            .strings = {bytes.begin(), bytes.end()},
            .soname = image.dynamic(DT_SONAME).value_or(0)};
}

} // namespace gpusnoop
