// SPDX-License-Identifier: Apache-2.0
#include "attach/file_search.hpp"

#include "attach/nccl_identity.hpp"
#include "attach/placement.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"
#include "code/decoder.hpp"
#include "proc/cuda_libraries.hpp"
#include "proc/mapped_file.hpp"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <new>
#include <optional>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>

namespace gpusnoop {
namespace {

constexpr size_t known_max = 1 << 17;
constexpr std::chrono::milliseconds scan_budget(200);
constexpr size_t unreadable_max = 16; // maximum reported per scan; a message holds 128 KiB, and a path may take 4 KiB

// Maps the first page of a file into this process.
class MappedPage {
public:
    explicit MappedPage(const Fd& file)
        : page_(mmap(nullptr, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_READ, MAP_PRIVATE, file.get(), 0))
    {}
    ~MappedPage()
    {
        if (page_ != MAP_FAILED)
            munmap(page_, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
    }
    MappedPage(const MappedPage&) = delete;
    MappedPage& operator=(const MappedPage&) = delete;
    uint64_t address() const { return page_ == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(page_); }

private:
    void* page_;
};

Runtime hip_of(const Elf& elf)
{
    constexpr std::string_view since_5_3[] = {"hipLaunchHostFunc"};
    const Runtime version = runtime_of(elf.soname());
    return version == hip5 && elf.functions(since_5_3).empty() ? hip52 : version;
}

} // namespace

void FileSearch::serve(Helper::Task& task)
{
    task_ = &task;
    while (auto message = task.connection.receive()) {
        const auto request = read_message<SearchRequest>(message->bytes);
        if (!request)
            return;
        task.set_status(status_of({}, ""));
        if (std::exchange(dropped_, request->dropped) != request->dropped)
            known_.clear();
        answer({.candidate = {},
                .examined = {},
                .end = request->kind == SearchRequest::Kind::mapped      ? search_mapped(request->pid)
                       : request->kind == SearchRequest::Kind::installed ? search_installed(request->pid)
                       : request->kind == SearchRequest::Kind::reexamine ? examine_again(request->path, message->file)
                       : request->kind == SearchRequest::Kind::opened
                           ? search_opened(request->path, std::move(message->file))
                           : check_paths(request->questions)});
    }
}

void FileSearch::answer(const SearchAnswer& answer, int file)
{
    if (!task_->connection.send(message_of(answer), file))
        _exit(0); // the tool has exited
}

void FileSearch::add_not_cuda(const Key& key)
{
    if (not_cuda_.size() >= known_max)
        not_cuda_.clear();
    not_cuda_.insert(key);
}

std::string FileSearch::status_of(const Key& key, std::string_view path)
{
    return fmt::format("{:x}:{:x}:{}", key.first, key.second, path);
}

std::pair<FileSearch::Key, std::string> FileSearch::parse_status(std::string_view at)
{
    Key key;
    for (uint64_t* const number : {&key.first, &key.second}) {
        const auto value = consume_number<uint64_t>(at, 16);
        if (!value || !at.starts_with(':'))
            return {};
        *number = *value;
        at.remove_prefix(1);
    }
    return {key, std::string(at)};
}

SearchEnd FileSearch::search_mapped(pid_t pid)
{
    SearchEnd end;
    std::vector<Mapping> all = mappings(pid);
    end.refused = all.empty() && mappings_are_refused(pid);
    const auto may_be_cuda = [this](const Mapping& m) { return has_cuda_name(m.path) || is_memfd(m.path); };
    if (!searches_all_files() && std::ranges::none_of(all, may_be_cuda))
        return end;
    const auto begin = std::chrono::steady_clock::now();
    std::erase_if(all, [](const Mapping& m) { return !m.executable || !m.inode; });
    // Mappings are sorted by address, and the kernel maps the executable below its libraries.
    const Key program = all.empty() ? Key() : Key(all.front().device, all.front().inode);
    // Examine files with CUDA names first, because other files may be slow to read.
    std::ranges::stable_partition(all, [this](const Mapping& m) { return has_cuda_name(m.path); });
    std::set<Key> seen;
    for (const Mapping& mapping : all) {
        const Key key(mapping.device, mapping.inode);
        const bool is_program = key == program;
        if (!seen.insert(key).second || (is_not_cuda(key) && !has_cuda_name(mapping.path)) || is_blocked(key))
            continue;
        if (std::chrono::steady_clock::now() - begin > scan_budget) {
            end.complete = false;
            break;
        }
        task_->set_status(status_of(key, mapping.path));
        const auto found = find_mapped(pid, mapping);
        if (!found) {
            report_unreadable(end, pid, mapping, errno);
            continue;
        }
        if (const auto known = known_.find(version_of(*found, mapping)); known != known_.end())
            end.known.push_back(known->second);
        else if (!submit(*found, mapping, is_program))
            report_unreadable(end, pid, mapping, errno);
    }
    return end;
}

// Examines a file that the process is about to map. /proc does not show the mapping yet.
SearchEnd FileSearch::search_opened(std::string_view path, Fd where)
{
    SearchEnd end;
    const auto found = find_regular_by_fd(std::move(where));
    if (!found)
        return end;
    Mapping mapping;
    mapping.deleted = cut_deleted(path);
    mapping.path = path;
    mapping.device = found->device;
    mapping.inode = found->inode;
    const Key key(found->device, found->inode);
    if ((is_not_cuda(key) && !has_cuda_name(mapping.path)) || is_blocked(key))
        return end;
    task_->set_status(status_of(key, mapping.path));
    if (const auto known = known_.find(version_of(*found, mapping)); known != known_.end())
        end.known.push_back(known->second);
    else
        submit(*found, mapping, false); // open errors are ignored here: the next scan after the mapping reports them
    return end;
}

SearchEnd FileSearch::search_installed(pid_t pid)
{
    for (const std::string& folder : driver_folders(environment(pid)))
        for (const std::string_view name : driver_names) {
            Mapping mapping;
            mapping.path = fmt::format("{}/{}", folder, name);
            task_->set_status(status_of({}, mapping.path));
            if (const auto found = find_in_root_of(pid, mapping.path))
                submit(*found, mapping, false);
        }
    return {};
}

SearchEnd FileSearch::examine_again(const std::string& path, const Fd& file)
{
    Mapping mapping;
    mapping.path = path;
    task_->set_status(status_of({}, path));
    if (const auto found = find_regular_by_link(fmt::format("/proc/self/fd/{}", file.get())))
        submit(*found, mapping, true);
    return {};
}

SearchEnd FileSearch::check_paths(const std::vector<SearchRequest::Question>& questions) const
{
    SearchEnd end;
    for (const auto& [path, inode, pids] : questions) {
        task_->set_status(status_of({}, path));
        bool leads = false;
        for (auto pid = pids.begin(); pid != pids.end() && !leads; ++pid)
            leads = leads_to(*pid, path, inode);
        end.leads.push_back(leads);
    }
    return end;
}

FileSearch::Version FileSearch::version_of(const FoundFile& found, const Mapping& mapping)
{
    return {{mapping.device, mapping.inode}, found.device, found.inode, found.changed_ns};
}

// Adds the file to end.unreadable, unless the process has exited or has unmapped it meanwhile.
void FileSearch::report_unreadable(SearchEnd& end, pid_t pid, const Mapping& mapping, int error) const
{
    const auto is_same = [&](const Mapping& m) {
        return m.start == mapping.start && m.device == mapping.device && m.inode == mapping.inode;
    };
    if (has_cuda_name(mapping.path) && end.unreadable.size() < unreadable_max &&
        std::ranges::any_of(mappings(pid), is_same))
        end.unreadable.push_back({mapping.path, mapping.device, mapping.inode, error});
}

// Sends the file to the tool as a candidate. If the tool replies that the file is new, examines it and sends the
// result. Returns false and sets errno if the file cannot be opened.
bool FileSearch::submit(const FoundFile& found, const Mapping& mapping, bool is_program)
{
    Fd file = open_found(found);
    if (!file)
        return false;
    const MappedPage page(file);
    answer({.candidate = FileCandidate{.path = mapping.path,
                                       .deleted = mapping.deleted,
                                       .device = mapping.device,
                                       .inode = mapping.inode,
                                       .page = page.address(),
                                       .changed_ns = found.changed_ns},
            .examined = {},
            .end = {}},
           found.where.get());
    const auto verdict = task_->connection.receive();
    if (!verdict)
        _exit(0);
    const auto [wanted, number] = read_message<SearchVerdict>(verdict->bytes).value_or(SearchVerdict());
    if (number) {
        if (known_.size() >= known_max)
            known_.clear();
        known_.insert_or_assign(version_of(found, mapping), number);
    }
    if (!wanted)
        return true;
    ExaminedFile result;
    const int watch = verdict->file
                          ? inotify_add_watch(verdict->file.get(), fmt::format("/proc/self/fd/{}", file.get()).c_str(),
                                              IN_MODIFY | IN_CLOSE_WRITE)
                          : -1;
    try {
        result = examine(std::move(file), mapping, is_program);
    } catch (const Error& error) {
        result = {.cuda = true, .places = {}, .missing = {}, .complaint = error.what()};
    } catch (const std::bad_alloc&) {
        result = {.cuda = true,
                  .places = {},
                  .missing = {},
                  .complaint = fmt::format("its symbols need more than {} MiB of memory", memory_bytes >> 20)};
    }
    result.watch = watch;
    if (!result.cuda) {
        add_not_cuda({mapping.device, mapping.inode});
        if (watch >= 0)
            inotify_rm_watch(verdict->file.get(), watch);
    }
    answer({.candidate = {}, .examined = std::move(result), .end = {}});
    return true;
}

ExaminedFile FileSearch::examine(Fd file, const Mapping& mapping, bool is_program) const
{
    bool by_name = has_cuda_name(mapping.path);
    std::optional<Elf> opened;
    try {
        opened.emplace(std::move(file));
    } catch (const Error&) {
        if (by_name)
            throw;
        return {}; // not a valid ELF file, which is an error only for a file with a CUDA name
    }
    const Elf& elf = *opened;
    const std::string soname = is_memfd(mapping.path) ? elf.soname() : "";
    by_name |= has_cuda_name(soname);
    ExaminedFile found;
    if (is_driver(mapping.path) || is_driver(soname)) {
        locate(found, elf, any_runtime);
        return found;
    }
    if (is_hip(mapping.path) || is_hip(soname)) {
        found.library = Library::hip;
        locate(found, elf, hip_of(elf));
        return found;
    }
    found.library = nccl_ ? Library::nccl : Library::runtime;
    if (by_name) {
        locate(found, elf, runtime_of(elf.soname()));
        return found;
    }
    // nvcc links the runtime statically by default, and NCCL can be linked statically, too. A file into which one of
    // them is linked contains device code, so libraries without device code are skipped.
    if (!is_program && !elf.has_section(".nvFatBinSegment") && !elf.has_section(".nv_fatbin"))
        return {};
    locate(found, elf, any_runtime);
    found.cuda = !found.places.empty();
    return found;
}

void FileSearch::locate(ExaminedFile& found, const Elf& elf, Runtime runtime) const
{
    found.cuda = true;
    if (found.library == Library::nccl)
        found.cookie_word = identity_word(elf, host_decoder());
    std::unordered_map<std::string_view, unsigned> wanted;
    std::vector<std::string_view> names;
    for (unsigned i = 0; i < probes_.size(); i++) {
        const Probe& probe = probes_[i];
        if (probe.library == found.library && applies(probe, runtime)) {
            wanted.emplace(probe.symbol, i);
            names.push_back(probe.symbol);
        }
    }
    std::set<std::string_view> defined;
    std::set<uint64_t> taken; // file offsets of the probes so far; a function and its aliases share one probe
    DispatchTables tables(elf);
    for (const Symbol& symbol : elf.functions(names)) {
        auto row = wanted.find(symbol.name);
        if (row == wanted.end())
            continue;
        defined.insert(row->first);
        const auto [offset, placement] = place(elf, tables, symbol, probes_[row->second].row);
        if (taken.insert(offset).second)
            found.places.push_back({row->second, offset + placement.delta, placement.delta, placement.emulated});
    }
    for (std::string_view name : names)
        if (!defined.contains(name))
            found.missing.emplace_back(name);
}

} // namespace gpusnoop
