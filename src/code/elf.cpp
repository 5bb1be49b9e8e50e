// SPDX-License-Identifier: Apache-2.0
#include "code/elf.hpp"

#include "base/error.hpp"
#include "base/machine.hpp"
#include "code/decoder.hpp"
#include "code/elf_image.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <libelf.h>
#include <set>
#include <sys/stat.h>
#include <tuple>
#include <unordered_set>

namespace gpusnoop {

namespace {

// Limits on allocations and scans, against hostile files. They are far above the sizes in the largest CUDA libraries. A
// table that exceeds its limit is treated as absent.
constexpr uint64_t max_table_symbols = 8 << 20;
constexpr uint64_t max_symtab_strings = 512 << 20; // bytes; large C++ programs with debug information come close
constexpr uint64_t max_other_section = 64 << 20;
constexpr size_t max_segments = 256;
constexpr size_t max_name = 64 << 10;
constexpr size_t max_found = 4096;
constexpr size_t max_build_id = 64;

bool fits(uint64_t offset, uint64_t size, uint64_t whole)
{
    return offset <= whole && size <= whole - offset;
}

// Reads size bytes at offset, or fewer if the file ends before. Throws Error if reading fails.
size_t read_at(const Fd& file, uint64_t offset, void* to, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const auto at = static_cast<off_t>(offset + done);
        const ssize_t got = pread(file.get(), static_cast<char*>(to) + done, size - done, at);
        if (got == 0)
            break;
        if (got > 0)
            done += static_cast<size_t>(got);
        else if (errno != EINTR)
            throw Error("cannot read ELF file: " + errno_text(errno));
    }
    return done;
}

// Checks the header. The counts are checked because libelf will allocate tables of these sizes.
void check_header(const Fd& file, uint64_t file_size)
{
    static const std::string hint = fmt::format("only 64-bit {} programs and libraries can be traced", host_elf.name);
    Elf64_Ehdr header{};
    const size_t got = read_at(file, 0, &header, sizeof(header));
    if (got < SELFMAG || !std::equal(header.e_ident, header.e_ident + SELFMAG, ELFMAG))
        throw Error("not an ELF file");
    if (got < sizeof(header))
        throw Error("truncated ELF file");
    if (header.e_ident[EI_CLASS] == ELFCLASS32)
        throw Error("32-bit ELF file", hint);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_VERSION] != EV_CURRENT)
        throw Error("malformed ELF file (unknown class or version)");
    if (header.e_machine == other_elf.number)
        throw Error(fmt::format("ELF file for another machine ({})", other_elf.name), hint);
    if (header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != host_elf.number)
        throw Error("ELF file for another machine (number " + std::to_string(header.e_machine) + ")", hint);
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        throw Error("ELF file is neither a program nor a shared library");
    // Rejects the extended forms (PN_XNUM, or e_shnum 0 with the count stored elsewhere), in which counts are not
    // limited. Linkers never write them.
    if (header.e_phnum > max_segments || (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) ||
        (header.e_shoff != 0 && (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr))))
        throw Error("malformed ELF file (header tables)");
    if (!fits(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), file_size) ||
        !fits(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr), file_size))
        throw Error("truncated ELF file");
}

// Returns a section as an array. libelf reads the section at the first call and keeps it until elf_end(). The bytes are
// used without conversion, because the file has the host's byte order and word size. They are aligned, because libelf
// reads sections into memory from malloc().
template<typename T>
std::span<const T> entries(Elf_Scn* section, uint64_t max_size)
{
    const Elf64_Shdr* header = elf64_getshdr(section);
    const Elf_Data* data = header != nullptr && header->sh_size <= max_size ? elf_getdata(section, nullptr) : nullptr;
    if (data == nullptr || data->d_buf == nullptr)
        return {};
    return {static_cast<const T*>(data->d_buf), data->d_size / sizeof(T)};
}

// Returns the text from offset up to a zero byte or `stop`. Empty if neither follows within max bytes.
std::string_view string_at(std::string_view table, uint64_t offset, size_t max = max_name, char stop = '\0')
{
    if (offset >= table.size())
        return {};
    const std::string_view rest = table.substr(offset, max + 1);
    const auto* end = std::find_if(rest.begin(), rest.end(), [stop](char c) { return c == '\0' || c == stop; });
    return end == rest.end() ? std::string_view{} : std::string_view(rest.begin(), end);
}

struct SymbolTable {
    std::span<const Elf64_Sym> symbols;
    std::string_view strings;

    // Returns the name without "@VERSION", which linkers append in .symtab. Empty if the name is longer than max.
    std::string_view name(const Elf64_Sym& symbol, size_t max) const
    {
        return string_at(strings, symbol.st_name, max, '@');
    }
};

// Sort key of a symbol. The first symbol in sort order at an address is shown.
struct Located {
    uint64_t address;
    uint32_t rank; // symbol_rank(), plus dynamic_rank for .dynsym
    uint32_t symbol;

    bool operator<(const Located& other) const
    {
        return std::tie(address, rank, symbol) < std::tie(other.address, other.rank, other.symbol);
    }
};
constexpr uint32_t dynamic_rank = 16; // added for .dynsym, so that symbols of .symtab come first

struct End {
    void operator()(::Elf* elf) const { elf_end(elf); }
};

} // namespace

unsigned symbol_rank(const Elf64_Sym& symbol)
{
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    return (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT ? 8U : 0U) + (symbol.st_size == 0 ? 4U : 0U) +
           (binding == STB_LOCAL ? 2U : 0U) + (binding == STB_WEAK ? 1U : 0U);
}

struct Elf::Impl {
    Fd file;
    uint64_t file_size = 0;
    std::unique_ptr<::Elf, End> elf;
    std::span<const Elf64_Phdr> segments;
    std::optional<SymbolTable> tables[2];           // .symtab and .dynsym, read on first use
    std::optional<DynamicSymbols> without_sections; // symbols if there are no section headers, read on first use
    std::optional<std::vector<Located>> located;    // all symbols by address, sorted on first use

    explicit Impl(Fd fd);

    // Returns the first matching section. Linkers write at most one section of each type that is searched for here.
    template<typename Predicate>
    Elf_Scn* find_section(Predicate matches) const
    {
        for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf.get(), scn)) != nullptr;) {
            const Elf64_Shdr* header = elf64_getshdr(scn);
            if (header != nullptr && matches(*header))
                return scn;
        }
        return nullptr;
    }

    Elf_Scn* section(Elf64_Word type) const
    {
        return find_section([type](const Elf64_Shdr& header) { return header.sh_type == type; });
    }

    Elf_Scn* section(std::string_view name) const
    {
        size_t index = 0;
        if (name.empty() || elf_getshdrstrndx(elf.get(), &index) != 0)
            return nullptr;
        return find_section([name, names = strings(index)](const Elf64_Shdr& header) {
            return string_at(names, header.sh_name, name.size()) == name;
        });
    }

    std::string_view strings(size_t section_index, uint64_t max_size = max_other_section) const
    {
        const auto bytes = entries<char>(elf_getscn(elf.get(), section_index), max_size);
        return {bytes.data(), bytes.size()};
    }

    const Elf64_Phdr* load_segment(uint64_t address) const
    {
        for (const Elf64_Phdr& s : segments)
            if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
                return &s;
        return nullptr;
    }

    // self: the Elf that owns this object.
    const SymbolTable& table(const Elf& self, bool dynamic);
    // Returns the symbols of a file without section headers. Empty for other files.
    const DynamicSymbols& symbols_without_sections(const Elf& self);
    const std::vector<Located>& locations(const Elf& self);
    Symbol symbol(const Elf64_Sym& s, std::string_view name) const;
};

Elf::Impl::Impl(Fd fd) : file(std::move(fd))
{
    struct stat status = {};
    if (fstat(file.get(), &status) != 0)
        throw Error("cannot read ELF file: " + errno_text(errno));
    if (!S_ISREG(status.st_mode))
        throw Error("not a regular file");
    file_size = static_cast<uint64_t>(status.st_size);
    check_header(file, file_size);

    // ELF_C_READ_MMAP is not used, because access to the mapping would raise SIGBUS after another process has truncated
    // the file.
    elf_version(EV_CURRENT);
    elf.reset(elf_begin(file.get(), ELF_C_READ, nullptr));
    size_t segment_count = 0;
    size_t section_count = 0;
    const bool counted = elf_kind(elf.get()) == ELF_K_ELF && elf_getphdrnum(elf.get(), &segment_count) == 0 &&
                         elf_getshdrnum(elf.get(), &section_count) == 0;
    // Check the counts again, because the file may have changed since check_header().
    if (!counted || segment_count > max_segments || section_count > UINT16_MAX)
        throw Error("malformed ELF file (header tables)");
    if (const Elf64_Phdr* first = elf64_getphdr(elf.get()))
        segments = {first, segment_count};
    for (const Elf64_Phdr& segment : segments)
        if (segment.p_type == PT_LOAD && !fits(segment.p_offset, segment.p_filesz, file_size))
            throw Error("truncated ELF file");
}

const DynamicSymbols& Elf::Impl::symbols_without_sections(const Elf& self)
{
    if (!without_sections)
        without_sections = elf_nextscn(elf.get(), nullptr) ? DynamicSymbols() : dynamic_symbols(self);
    return *without_sections;
}

const SymbolTable& Elf::Impl::table(const Elf& self, bool dynamic)
{
    std::optional<SymbolTable>& slot = tables[dynamic ? 1 : 0];
    if (slot)
        return *slot;
    SymbolTable& table = slot.emplace();
    if (dynamic && !symbols_without_sections(self).symbols.empty()) {
        table.symbols = symbols_without_sections(self).symbols;
        table.strings = symbols_without_sections(self).strings;
        return table;
    }
    Elf_Scn* scn = section(dynamic ? SHT_DYNSYM : SHT_SYMTAB);
    table.symbols = entries<Elf64_Sym>(scn, max_table_symbols * sizeof(Elf64_Sym));
    if (table.symbols.empty())
        return table;
    table.strings = strings(elf64_getshdr(scn)->sh_link, dynamic ? max_other_section : max_symtab_strings);
    return table;
}

const std::vector<Located>& Elf::Impl::locations(const Elf& self)
{
    if (located)
        return *located;
    std::vector<Located>& all = located.emplace();
    for (const bool dynamic : {false, true}) {
        const SymbolTable& from = table(self, dynamic);
        for (size_t i = 1; i < from.symbols.size(); i++) {
            const Elf64_Sym& s = from.symbols[i];
            const unsigned type = ELF64_ST_TYPE(s.st_info);
            const bool defined = s.st_shndx != SHN_UNDEF && (s.st_shndx < SHN_LORESERVE || s.st_shndx == SHN_XINDEX);
            if (!defined || (type != STT_FUNC && type != STT_OBJECT) || s.st_name >= from.strings.size() ||
                from.strings[s.st_name] == '\0')
                continue;
            all.push_back({s.st_value, (dynamic ? dynamic_rank : 0) + symbol_rank(s), static_cast<uint32_t>(i)});
        }
    }
    std::sort(all.begin(), all.end());
    const auto same = [](const Located& a, const Located& b) { return a.address == b.address; };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
}

Symbol Elf::Impl::symbol(const Elf64_Sym& s, std::string_view name) const
{
    Symbol result;
    result.name = name;
    result.address = s.st_value;
    result.size = s.st_size;
    result.function = ELF64_ST_TYPE(s.st_info) == STT_FUNC;
    if (const Elf64_Phdr* segment = load_segment(s.st_value))
        result.file_offset = s.st_value - segment->p_vaddr + segment->p_offset;
    return result;
}

Elf::Elf(Fd file) : impl_(std::make_unique<Impl>(std::move(file))) {}
Elf::~Elf() = default;
Elf::Elf(Elf&&) noexcept = default;
Elf& Elf::operator=(Elf&&) noexcept = default;

std::string Elf::soname() const
{
    if (const DynamicSymbols& loaded = impl_->symbols_without_sections(*this); loaded.soname)
        return std::string(string_at(loaded.strings, loaded.soname));
    Elf_Scn* scn = impl_->section(SHT_DYNAMIC);
    for (const Elf64_Dyn& entry : entries<Elf64_Dyn>(scn, max_other_section)) {
        if (entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_SONAME)
            return std::string(string_at(impl_->strings(elf64_getshdr(scn)->sh_link), entry.d_un.d_val));
    }
    return {};
}

std::string Elf::build_id() const
{
    const auto note = entries<char>(impl_->section(".note.gnu.build-id"), max_other_section);
    Elf64_Nhdr header{};
    constexpr size_t id_at = sizeof(header) + sizeof("GNU");
    if (note.size() >= sizeof(header))
        std::memcpy(&header, note.data(), sizeof(header));
    if (header.n_type != NT_GNU_BUILD_ID || header.n_namesz != sizeof("GNU") || header.n_descsz > max_build_id ||
        !fits(id_at, header.n_descsz, note.size()))
        return {};
    std::string hex;
    for (const char c : note.subspan(id_at, header.n_descsz)) {
        hex += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
        hex += "0123456789abcdef"[static_cast<uint8_t>(c) & 15];
    }
    return hex;
}

bool Elf::has_section(std::string_view name) const
{
    return impl_->section(name) != nullptr;
}

std::vector<Symbol> Elf::functions(std::span<const std::string_view> names) const
{
    const std::unordered_set<std::string_view> wanted(names.begin(), names.end());
    size_t longest = 0;
    for (const std::string_view name : wanted)
        longest = std::max(longest, name.size());

    std::vector<Symbol> found;
    std::set<std::pair<std::string_view, uint64_t>> seen;
    for (const bool dynamic : {true, false}) {
        const SymbolTable& table = impl_->table(*this, dynamic);
        for (size_t i = 1; i < table.symbols.size() && found.size() < max_found; i++) {
            // Skips undefined symbols, because the value of an imported function's symbol may be the address of its PLT
            // entry.
            const Elf64_Sym& s = table.symbols[i];
            if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF)
                continue;
            const auto name = wanted.find(table.name(s, longest));
            if (name == wanted.end() || name->empty())
                continue;
            const Elf64_Phdr* segment = impl_->load_segment(s.st_value);
            if (segment == nullptr || (segment->p_flags & PF_X) == 0)
                continue;
            Symbol symbol = impl_->symbol(s, *name);
            if (seen.emplace(*name, symbol.file_offset).second)
                found.push_back(std::move(symbol));
        }
    }
    return found;
}

std::optional<Part> Elf::object(std::string_view name) const
{
    const SymbolTable& table = impl_->table(*this, true);
    for (size_t i = 1; i < table.symbols.size(); i++) {
        const Elf64_Sym& s = table.symbols[i];
        if (ELF64_ST_TYPE(s.st_info) == STT_OBJECT && s.st_shndx != SHN_UNDEF && table.name(s, name.size()) == name)
            return Part{s.st_value, offset_of(s.st_value).value_or(0), s.st_size};
    }
    return std::nullopt;
}

std::optional<Part> Elf::section(std::string_view name) const
{
    const Elf64_Shdr* const header = elf64_getshdr(impl_->section(name));
    return header ? std::optional(Part{header->sh_addr, header->sh_offset, header->sh_size}) : std::nullopt;
}

std::optional<Symbol> Elf::symbol_at(uint64_t address) const
{
    const std::vector<Located>& all = impl_->locations(*this);
    const auto at = std::lower_bound(all.begin(), all.end(), Located{address, 0, 0});
    if (at == all.end() || at->address != address)
        return std::nullopt;
    const SymbolTable& table = impl_->table(*this, at->rank >= dynamic_rank);
    const Elf64_Sym& s = table.symbols[at->symbol];
    const std::string_view name = table.name(s, max_name);
    return name.empty() ? std::nullopt : std::optional(impl_->symbol(s, name));
}

std::optional<uint64_t> Elf::offset_of(uint64_t address) const
{
    for (const Elf64_Phdr& s : segments())
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
            return s.p_offset + (address - s.p_vaddr);
    return std::nullopt;
}

std::vector<uint8_t> Elf::bytes(uint64_t file_offset, size_t max) const
{
    if (file_offset >= impl_->file_size)
        return {};
    std::vector<uint8_t> result(std::min<uint64_t>(max, impl_->file_size - file_offset));
    result.resize(read(file_offset, result));
    return result;
}

size_t Elf::read(uint64_t file_offset, std::span<uint8_t> to) const
{
    return file_offset < impl_->file_size ? read_at(impl_->file, file_offset, to.data(), to.size()) : 0;
}

uint64_t Elf::file_size() const
{
    return impl_->file_size;
}

void* Elf::handle() const
{
    return impl_->elf.get();
}

std::span<const Elf64_Phdr> Elf::segments() const
{
    return impl_->segments;
}

std::vector<Part> Elf::code() const
{
    std::vector<Part> parts;
    impl_->find_section([&](const Elf64_Shdr& s) {
        constexpr Elf64_Xword wanted = SHF_ALLOC | SHF_EXECINSTR;
        if ((s.sh_flags & wanted) == wanted && s.sh_type == SHT_PROGBITS &&
            fits(s.sh_offset, s.sh_size, impl_->file_size) && parts.size() < max_segments)
            parts.push_back({s.sh_addr, s.sh_offset, s.sh_size});
        return false;
    });
    if (!parts.empty())
        return parts;
    for (const Elf64_Phdr& s : impl_->segments)
        if (s.p_type == PT_LOAD && (s.p_flags & PF_X))
            parts.push_back({s.p_vaddr, s.p_offset, s.p_filesz});
    return parts;
}

} // namespace gpusnoop
