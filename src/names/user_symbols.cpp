// SPDX-License-Identifier: Apache-2.0
#include "names/user_symbols.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/machine.hpp"
#include "code/elf.hpp"
#include "code/elf_image.hpp"
#include "names/demangle.hpp"
#include "names/kernel_text.hpp"
#include "proc/mapped_file.hpp"
#include "proc/threads.hpp"
#include "reader/reader.hpp"

#include <algorithm>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <lzma.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <tuple>

namespace gpusnoop {
namespace {

// Limits that protect against hostile processes and files. Normal processes and files stay far below them.
constexpr size_t max_images = 64;
constexpr size_t max_name = 4096;
constexpr off_t max_file_size = off_t(4) << 30;
constexpr uint64_t max_tables = 192 << 20;       // bytes of symbols and names in memory, for all files together
constexpr uint64_t max_section_names = 64 << 10; // bytes of all section names
constexpr uint64_t max_debugdata = 256 << 10;    // bytes of .gnu_debugdata, compressed
constexpr uint64_t max_unpacked = 16 << 20;      // bytes of .gnu_debugdata, unpacked; also the decoder's memory limit
constexpr int max_nesting = 32; // maximum symbols examined per lookup; several, because their ranges may be nested
constexpr std::chrono::seconds refresh_interval(1);
constexpr std::string_view vdso_name = "[vdso]"; // cannot equal a path, because paths begin with a slash

struct End {
    void operator()(::Elf* elf) const { elf_end(elf); }
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
using ElfHandle = std::unique_ptr<::Elf, End>;

std::string_view content(Elf_Scn* section)
{
    const Elf_Data* const data = elf_getdata(section, nullptr);
    return data && data->d_buf ? std::string_view(static_cast<const char*>(data->d_buf), data->d_size) : "";
}

// Unpacks the data to measure its size, because the size in the header may be false. libdw unpacks it again later.
bool unpacks_within_limit(std::string_view packed)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> ended(&stream, lzma_end);
    if (lzma_auto_decoder(&stream, max_unpacked, 0) != LZMA_OK)
        return false;
    stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
    stream.avail_in = packed.size();
    std::vector<uint8_t> piece(64 << 10);
    lzma_ret state = LZMA_OK;
    while (state == LZMA_OK && stream.total_out <= max_unpacked) {
        stream.next_out = piece.data();
        stream.avail_out = piece.size();
        state = lzma_code(&stream, LZMA_FINISH);
    }
    return state == LZMA_STREAM_END;
}

// Reads the tables that libdw will use and returns their size. Returns 0 if there are none, if they exceed the budget,
// or if libdw could take too long. Compressed tables are slow to read, and broken tables make libdw search the whole
// file.
uint64_t read_tables(::Elf* elf, uint64_t budget)
{
    size_t names = 0;
    const bool named = elf_getshdrstrndx(elf, &names) == 0;
    const Elf64_Shdr* const all_names = named ? elf64_getshdr(elf_getscn(elf, names)) : nullptr;
    if (!all_names || all_names->sh_size > max_section_names)
        return 0;
    uint64_t bytes = 0;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section));) {
        const Elf64_Shdr* const s = elf64_getshdr(section);
        const char* const text = s ? elf_strptr(elf, names, s->sh_name) : nullptr;
        const std::string_view name(text ? text : "");
        if (!text ||
            (name == ".gnu_debugdata" && (s->sh_size > max_debugdata || !unpacks_within_limit(content(section)))) ||
            s->sh_type == SHT_SYMTAB_SHNDX || (name.starts_with(".zdebug") && s->sh_type == SHT_STRTAB))
            return 0;
        if (s->sh_type != SHT_SYMTAB && s->sh_type != SHT_DYNSYM)
            continue;
        Elf_Scn* const linked = elf_getscn(elf, s->sh_link);
        const Elf64_Shdr* const l = elf64_getshdr(linked);
        if (!l || l->sh_type != SHT_STRTAB || ((s->sh_flags | l->sh_flags) & SHF_COMPRESSED) ||
            s->sh_entsize != sizeof(Elf64_Sym) || s->sh_info > s->sh_size / s->sh_entsize ||
            s->sh_size > budget - bytes || l->sh_size > budget - bytes - s->sh_size || content(section).empty() ||
            content(linked).empty())
            return 0;
        bytes += s->sh_size + l->sh_size;
    }
    return bytes;
}

// Returns the string table that libdw uses: the one that .symtab refers to, or else the one that .dynsym refers to.
std::string_view names_of(::Elf* elf)
{
    for (const Elf64_Word type : {SHT_SYMTAB, SHT_DYNSYM})
        for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section));)
            if (const Elf64_Shdr* const s = elf64_getshdr(section); s && s->sh_type == type)
                return content(elf_getscn(elf, s->sh_link));
    return {};
}

// Returns this process's vDSO. All processes have the same vDSO.
std::span<char> vdso()
{
    auto* const header = reinterpret_cast<Elf64_Ehdr*>(getauxval(AT_SYSINFO_EHDR)); // NOLINT(performance-no-int-to-ptr)
    return {reinterpret_cast<char*>(header), header ? header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr) : 0};
}

} // namespace

class SymbolFile {
public:
    struct Symbol {
        uint64_t start = 0; // virtual address in the file
        uint64_t end = 0;
        std::string_view name; // ends at a zero, or at "@VERSION"
        unsigned rank = 0;     // symbol_rank()
        bool label = false;    // a symbol without a size (from assembly); its range ends at the next symbol
    };

    // Reads at most `budget` bytes of tables. The file may be closed afterwards, because all that is needed has been
    // read.
    SymbolFile(ElfHandle elf, uint64_t budget)
    {
        size_t count = 0;
        if (!elf || elf_getphdrnum(elf.get(), &count) != 0)
            return;
        if (const Elf64_Phdr* const segments = elf64_getphdr(elf.get()))
            segments_.assign(segments, segments + count);
        table_bytes_ = read_tables(elf.get(), budget);
        if (table_bytes_ > 0)
            read_symbols(std::move(elf));
    }

    uint64_t table_bytes() const { return table_bytes_; }

    std::span<const Elf64_Phdr> segments() const { return segments_; }

    const Symbol* symbol_around(uint64_t address) const
    {
        const Symbol* best = nullptr;
        auto symbol = std::ranges::upper_bound(symbols_, address, {}, &Symbol::start);
        for (int i = 0; i < max_nesting && symbol != symbols_.begin() && (!best || best->label); i++)
            if (--symbol; address < symbol->end && (!symbol->label || i == 0))
                best = &*symbol;
        return best;
    }

private:
    void read_symbols(ElfHandle elf)
    {
        static constexpr Dwfl_Callbacks callbacks = {
            [](auto*, void** handle, auto*, auto, auto**, ::Elf** to) {
                *to = static_cast<ElfHandle*>(*handle)->release();
                return -1; // -1, because there is no descriptor for libdw to close
            },
            [](auto*, auto**, auto*, auto, auto*, auto*, auto, auto**) { return -1; }, nullptr, nullptr};
        dwfl_.reset(dwfl_begin(&callbacks));
        Dwfl_Module* const module = dwfl_ ? dwfl_report_module(dwfl_.get(), "", 0, 1) : nullptr;
        void** handle = nullptr;
        if (!module || dwfl_report_end(dwfl_.get(), nullptr, nullptr) != 0 ||
            !dwfl_module_info(module, &handle, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr))
            return;
        *handle = &elf;
        GElf_Addr bias = 0;
        ::Elf* const main = dwfl_module_getelf(module, &bias);
        const int count = main ? dwfl_module_getsymtab(module) : 0;
        ::Elf* named = nullptr; // the file that `names` belongs to: this file, or the ELF file in its .gnu_debugdata
        std::string_view names;
        for (int i = 1; i < count; i++) {
            GElf_Sym s{};
            GElf_Addr start = 0;
            GElf_Word section = 0;
            ::Elf* from = nullptr;
            const char* const name = dwfl_module_getsym_info(module, i, &s, &start, &section, &from, nullptr);
            const unsigned type = GELF_ST_TYPE(s.st_info);
            if (!name || (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || section >= SHN_LORESERVE)
                continue;
            if (std::exchange(named, from) != from)
                names = names_of(from);
            // libdw does not check that a name ends within its table.
            const auto at = reinterpret_cast<uintptr_t>(name) - reinterpret_cast<uintptr_t>(names.data());
            const Elf64_Shdr* const code = elf64_getshdr(elf_getscn(from, section));
            if (at >= names.size() || names[at] == '\0' || !code || !(code->sh_flags & SHF_EXECINSTR))
                continue;
            const bool label = s.st_size == 0;
            const uint64_t size = label ? code->sh_addr + code->sh_size - s.st_value : s.st_size;
            symbols_.push_back({start - bias, start - bias + size, names.substr(at, max_name), symbol_rank(s), label});
        }
        // Among symbols with the same start and rank, the largest comes first.
        std::ranges::stable_sort(symbols_, {}, [](const Symbol& s) { return std::tuple(s.start, s.rank, ~s.end); });
        const auto alias = [](const Symbol& a, const Symbol& b) { return a.start == b.start; };
        symbols_.erase(std::unique(symbols_.begin(), symbols_.end(), alias), symbols_.end());
        symbols_.shrink_to_fit();
        elf_cntl(main, ELF_C_FDDONE);
    }

    std::vector<Elf64_Phdr> segments_;
    uint64_t table_bytes_ = 0;
    std::unique_ptr<Dwfl, End> dwfl_; // owns the names
    std::vector<Symbol> symbols_; // sorted by start; searched here, as dwfl_module_addrinfo() would scan all symbols
};

// Generations start at the current time, so that they differ from the generations of earlier helpers.
UserSymbols::UserSymbols() : generations_(clock_ns(CLOCK_MONOTONIC))
{
    elf_version(EV_CURRENT);
}

UserSymbols::~UserSymbols() = default;

void UserSymbols::serve(Helper::Task& task)
{
    task_ = &task;
    answer_each<StackQuestion>(task, [&](const StackQuestion& question) {
        task.set_status("");
        return answer(question);
    });
}

StackAnswer UserSymbols::answer(const StackQuestion& question)
{
    StackAnswer answer{.image = question.image};
    if (question.addresses.empty()) {
        images_.erase(question.image);
        return answer;
    }
    try {
        Image& image = image_of(question.image);
        size_t room = StackAnswer::text_max;
        for (const uint64_t& address : question.addresses) {
            const bool innermost = question.innermost && &address == question.addresses.data();
            StackAnswer::Frame found = frame(static_cast<pid_t>(question.image.pid), image, address, innermost);
            found.text.resize(std::min(found.text.size(), StackAnswer::text_max));
            if (found.text.size() > room)
                break;
            room -= found.text.size();
            answer.frames.push_back(std::move(found));
        }
        answer.generation = image.generation;
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): out of memory
    }
    return answer;
}

UserSymbols::Image& UserSymbols::image_of(const ImageId& id)
{
    if (images_.size() >= max_images && !images_.contains(id))
        images_.erase(std::ranges::min_element(images_, {}, [](const auto& entry) { return entry.second.used; }));
    Image& image = images_[id];
    image.used = ++uses_;
    return image;
}

StackAnswer::Frame UserSymbols::frame(pid_t pid, Image& image, uint64_t address, bool innermost)
{
    // If a call ends a function, its return address is the first address of the next function.
    const uint64_t back = innermost || address == 0 ? 0 : 1;
    Place place = locate(pid, image, address - back);
    if (place.symbol.empty() && refresh(pid, image))
        place = locate(pid, image, address - back);
    if (!place.mapping || !place.mapping->executable) {
        const auto around = [&](const Mapping& m) { return m.start <= address - back && address - back < m.end; };
        if (std::ranges::any_of(image.anonymous, around))
            return {address, innermost, false, fmt::format("{:#x} (JIT)", address)};
        return {address, innermost, false, image.mappings.empty() ? fmt::format("{:#x}", address) : std::string()};
    }
    const std::string file = place.mapping->path.substr(place.mapping->path.rfind('/') + 1);
    const uint64_t offset = place.address + back - place.symbol_start;
    return {address, innermost, true,
            place.symbol.empty() ? fmt::format("{}+{:#x}", file, offset)
                                 : fmt::format("{}+{:#x} ({})", demangle(place.symbol), offset, file)};
}

UserSymbols::Place UserSymbols::locate(pid_t pid, Image& image, uint64_t address)
{
    auto mapping = std::ranges::upper_bound(image.mappings, address, {}, &Mapping::start);
    if (mapping == image.mappings.begin() || address >= (--mapping)->end)
        return {};
    Place place{&*mapping, mapping->file_offset + (address - mapping->start), {}, 0};
    if (!mapping->executable)
        return place; // the mapping may be of a device, which must not be opened
    const std::pair key(mapping->device, mapping->inode);
    auto file = image.files.find(key);
    if (file == image.files.end())
        file = image.files.emplace(key, open(pid, *mapping)).first;
    const auto bias = file->second ? load_bias(file->second->segments(), *mapping, address) : std::nullopt;
    if (!bias)
        return place;
    place.address = address - *bias;
    if (const SymbolFile::Symbol* const symbol = file->second->symbol_around(place.address)) {
        place.symbol = symbol->name.substr(0, symbol->name.find_first_of(std::string_view("\0@", 2)));
        place.symbol_start = symbol->start;
    }
    return place;
}

// Returns null if the file cannot be opened or is not an ELF file.
std::shared_ptr<const SymbolFile> UserSymbols::open(pid_t pid, const Mapping& mapping)
{
    Fd file;
    std::array<int64_t, 4> key{};
    if (mapping.path != vdso_name) {
        if (task_)
            task_->set_status(mapping.path);
        file = open_mapped(pid, mapping);
        struct stat st {};
        if (!file || fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > max_file_size)
            return nullptr;
        key = {static_cast<int64_t>(st.st_dev), static_cast<int64_t>(st.st_ino), st.st_ctim.tv_sec, st.st_ctim.tv_nsec};
    }
    std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
    if (auto known = files_.find(key); known != files_.end())
        return known->second.lock();
    uint64_t budget = max_tables;
    for (const auto& [other, opened] : files_)
        budget -= opened.lock()->table_bytes();
    try {
        if (file)
            const Elf checked(Fd(fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
        // ELF_C_READ does not map the file: access to a mapped file raises SIGBUS if another process truncates the
        // file.
        ElfHandle elf(file ? elf_begin(file.get(), ELF_C_READ, nullptr) : elf_memory(vdso().data(), vdso().size()));
        auto opened = std::make_shared<const SymbolFile>(std::move(elf), budget);
        files_[key] = opened;
        return opened;
    } catch (const Error&) {
        return nullptr;
    }
}

// Reads the mappings again, at most once per refresh_interval. Returns false if they have not changed or are
// unreadable.
bool UserSymbols::refresh(pid_t pid, Image& image)
{
    const auto now = std::chrono::steady_clock::now();
    if (image.refreshed && now - *image.refreshed < refresh_interval)
        return false;
    image.refreshed = now;
    auto found = mappings(pid);
    image.anonymous = anonymous_code(pid);
    std::vector<uint64_t> auxiliary(128);
    std::ifstream file(fmt::format("/proc/{}/auxv", running_thread(pid).value_or(pid)), std::ios::binary);
    file.read(reinterpret_cast<char*>(auxiliary.data()), std::ssize(auxiliary) * ssize_t{sizeof(uint64_t)});
    auxiliary.resize(static_cast<size_t>(file.gcount()) / sizeof(uint64_t));
    // The process has exited or called exec, or its pid was reused.
    if (found.empty() || auxiliary.empty() || (!image.auxiliary.empty() && auxiliary != image.auxiliary))
        return false;
    for (size_t i = 0; i + 1 < auxiliary.size(); i += 2) {
        const uint64_t page = machine::page_size();
        const uint64_t size = (vdso().size() + page - 1) / page * page;
        if (auxiliary[i] == AT_SYSINFO_EHDR)
            found.push_back({.start = auxiliary[i + 1],
                             .end = auxiliary[i + 1] + size,
                             .executable = true,
                             .path = std::string(vdso_name)});
    }
    std::ranges::sort(found, {}, &Mapping::start);
    const auto all = [](const Mapping& m) { return std::tuple(m.start, m.end, m.file_offset, m.device, m.inode); };
    if (std::ranges::equal(found, image.mappings, {}, all, all))
        return false;
    image.mappings = std::move(found);
    image.auxiliary = std::move(auxiliary);
    image.generation = ++generations_;
    // The inode number of an unmapped file may be reused for another file.
    std::erase_if(image.files, [&image](const auto& entry) {
        const auto same = [&entry](const Mapping& m) { return std::pair(m.device, m.inode) == entry.first; };
        return !entry.second || std::ranges::none_of(image.mappings, same);
    });
    return true;
}

} // namespace gpusnoop
