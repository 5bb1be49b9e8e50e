// SPDX-License-Identifier: Apache-2.0
// Launch handle -> kernel name. A handle is a CUfunction, a CUkernel, a runtime kernel handle, or the address of a host
// stub. Names come from the calls that created the handle. If these calls were not traced, a helper process searches
// the files and memory of the traced process (name_search.hpp). Once a handle has a name, the name does not change.
#pragma once

#include "bpf/shared/names.h"
#include "names/name_messages.hpp"
#include "names/scan_cache.hpp"
#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace gpusnoop {

class KernelNames {
public:
    // cache_folder: folder for the results of file scans (scan_cache.hpp), or empty to disable the cache. waits: see
    // Reader.
    explicit KernelNames(const std::string& cache_folder, WaitBudget* waits = nullptr);
    ~KernelNames();
    KernelNames(const KernelNames&) = delete;
    KernelNames& operator=(const KernelNames&) = delete;

    // record: a record from the ring buffer, followed by the name. size: total bytes of the record and the name.
    void learn(const name_record& record, size_t size);

    // Sets the map that holds records that did not fit in the ring buffer (bpf/kinds/state.bpf.h). unsent_max is its
    // capacity.
    void read_unsent_from(int map_fd) { unsent_fd_ = map_fd; }
    static constexpr uint32_t unsent_max = 65536;

    // Returns the number of unnamed handles whose record did not fit in the ring buffer, since the last call. Counts
    // each handle once.
    uint64_t lost_since_last();

    // Returns nullopt while the name is unknown. Call it early: as a last resort, a helper searches the process's files
    // and memory, which works only while the process runs. The name is mangled until the helper has demangled it.
    std::optional<KernelName> name(const ImageId& image, uint64_t handle);

    // Scans the files of a target in advance, before it launches a kernel without a name.
    void expect(pid_t pid);

    // To be called once a second. Scans the files of processes that have launched unnamed kernels. When the helper has
    // learned of more kernels or object layouts, retries all unnamed handles at once, because a process may exit before
    // the next report.
    void tick();

    // Waits for pending scans and answers, at most `patience`. To be called before the last report.
    void finish(std::chrono::milliseconds patience);

    void forget(const ImageId& image);

    // Approximate memory budget for all names, in bytes. A process may use at most half of what the other processes
    // leave free. If its names need more memory, the remaining kernels are shown by handle. Names of other processes
    // are never dropped to make room.
    static constexpr size_t bytes_max = 96 << 20;
    size_t bytes() const { return bytes_; }

private:
    struct Known {
        KernelName name;         // empty if only the alias is known
        bool asked = false;      // the helper has been asked to demangle the name
        bool awaited = false;    // a caller has already waited for the demangled name
        uint64_t alias = 0;      // another handle of the same kernel
        bool correlated = false; // the alias comes from a NAME_CORRELATED record
    };

    // A name that has not been read from the process yet.
    struct Unread {
        uint64_t address = 0; // 0 if reading the name at its address has failed
        NameSource source = NameSource::none;
        bool unsent = false; // the ring buffer had no room for the record
    };

    // A handle that name() was called for and whose name is unknown.
    struct Unnamed {
        uint8_t failures = 0; // number of lookups that found nothing
        bool pending = false; // the helper is looking it up
    };

    struct Process {
        std::unordered_map<uint64_t, Known> handles;
        std::unordered_map<uint64_t, Unnamed> unnamed;
        std::unordered_map<uint64_t, Unread> unread;
        std::set<uint64_t> mangled; // handles whose names must still be sent to the helper for demangling
        bool is_full = false;       // accepts no more unnamed handles until the next tick()
        size_t asked_early = 0;
        size_t bytes = 0; // memory charged to the budget
    };

    static constexpr std::chrono::milliseconds retry_budget{50}; // maximum time per tick(); the next tick() continues
                                                                 // the retries

    KernelName resolve(const ImageId& image, Process& process, uint64_t handle, int depth);
    KernelName search(const ImageId& image, Process& process, uint64_t handle);
    bool reserve(Process& process, size_t bytes);
    Known* known_at(Process& process, uint64_t handle);
    Unread* unread_at(Process& process, uint64_t handle);
    Unnamed* unnamed_at(Process& process, uint64_t handle);
    bool set_name(Process& process, uint64_t handle, KernelName name);
    Process& process_of(const ImageId& image);
    void learn_text(const name_record& record, Process& process, std::string text);
    void demangle(const ImageId& image, Process& process, uint64_t handle, Known& known);
    void set_readable(Process& process, Known& known, const std::string& readable);
    bool set_alias(Process& process, const name_record& record);
    void release(Process& process, size_t bytes);
    void drop_known(Process& process, uint64_t handle);
    void drop_unread(Process& process, uint64_t handle);
    void learn_unread(const name_record& record, Process& process, bool unsent);
    bool learn_unsent(const ImageId& image, Process& process, uint64_t handle);
    void drain_unsent();
    void count_lost(Process& process);
    static const KernelName* known_name(const Process& process, uint64_t handle); // null: unknown
    Reader::Outcome look_up(const ImageId& image, Process& process, uint64_t handle);
    static NameQuestion question_about(const ImageId& image, const Process& process, uint64_t handle);
    Reader::Outcome ask(NameQuestion question);
    bool post(NameQuestion question, int file = -1);
    bool apply(Message message);
    void keep_readable(const std::string& mangled, const std::string& readable);
    void begin_scan(const ScanWanted& wanted, const Fd& file);
    void post_scan_result(const ScanWanted& wanted, const Registrations& found);
    bool advance();
    void retry_unnamed();
    void on_restart();

    std::map<ImageId, Process> processes_;
    std::set<ImageId> with_unnamed_; // processes that have launched unnamed kernels since the last tick
    ScanCache cache_;
    std::optional<ScanWanted> scan_; // the running scan; the name helper has requested it
    Scanner scanner_;
    uint64_t learned_ = 0;                                  // last value of NameAnswer::learned that the helper sent
    bool learned_more_ = false;                             // learned_ has changed, so failed lookups may succeed now
    bool retry_ = false;                                    // retry_unnamed() has work to do
    size_t bytes_ = 0;                                      // sum over all processes
    std::unordered_map<std::string, std::string> readable_; // demangled names by mangled name, for all processes
    size_t readable_bytes_ = 0;
    int unsent_fd_ = -1;
    uint64_t lost_ = 0;
    Reader reader_;
};

} // namespace gpusnoop
