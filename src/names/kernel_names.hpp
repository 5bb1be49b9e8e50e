// SPDX-License-Identifier: Apache-2.0
// Launch handle -> kernel name. A handle is a CUfunction, a CUkernel, a runtime kernel handle, or the address of a host
// stub; what each stands for is learned from the calls that made it, and from the process' files and memory, which a
// helper reads (name_search.hpp). Names of one handle never change; that it has none may.
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
    // cache_folder: where what scans of files have found is kept; empty: nowhere (scan_cache.hpp). waits: see Reader.
    explicit KernelNames(const std::string& cache_folder, WaitBudget* waits = nullptr);
    ~KernelNames();
    KernelNames(const KernelNames&) = delete;
    KernelNames& operator=(const KernelNames&) = delete;

    // A record from the ring, with its name behind it (size: of both).
    void learn(const name_record& record, size_t size);

    // The map of records that are not in the ring (bpf/kinds/state.bpf.h), by descriptor, and how many it should hold.
    void read_unsent_from(int map_fd) { unsent_fd_ = map_fd; }
    static constexpr uint32_t unsent_max = 65536;

    // Handles since the last call that name() had no name for because the kernel side lost it.
    uint64_t lost_since_last();

    // nullopt while unknown. Has the process' symbols and memory looked at if nothing else is known, which works while
    // it lives, so ask early. A name that the helper has not demangled yet is returned as it is.
    std::optional<KernelName> name(const ImageId& image, uint64_t handle);

    // A process that was asked for: its files are scanned before it launches something unknown.
    void expect(pid_t pid);

    // Once a second: scans of the files of processes that have launched something unknown go on, elsewhere. Handles
    // without a name are looked up again once more is known, whether or not they are launched again: the process may
    // have exited by the next report.
    void tick();

    // The last report follows: waits for the scan and the answers that are under way, at most this long.
    void finish(std::chrono::milliseconds patience);

    void forget(const ImageId& image);

    // Bytes that the names take, about. Names of a process that takes more than what is left are not kept: its kernels
    // have handles instead, and others their names.
    static constexpr size_t bytes_max = 96 << 20;
    size_t bytes() const { return bytes_; }

private:
    struct Known {
        KernelName name;         // empty where only the alias is known
        bool asked = false;      // the helper, for its readable form
        bool awaited = false;    // ... by a caller
        uint64_t alias = 0;      // another handle of the same kernel
        bool correlated = false; // that is what the alias is from
    };

    // Where the name of a handle lies in the process, for when it is needed.
    struct Unread {
        uint64_t address = 0; // 0: nowhere any more
        NameSource source = NameSource::none;
        bool unsent = false; // the ring had no room for it
    };

    // A handle that was asked for and has no name so far.
    struct Unnamed {
        uint8_t failures = 0; // lookups that found nothing
        bool pending = false; // the helper has been asked
    };

    struct Process {
        std::unordered_map<uint64_t, Known> handles;
        std::unordered_map<uint64_t, Unnamed> unnamed;
        std::unordered_map<uint64_t, Unread> unread;
        std::set<uint64_t> mangled; // handles that were asked for, and whose names the helper has yet to demangle
        bool is_full = false;       // of unnamed handles, in this second
        size_t asked_early = 0;
        size_t bytes = 0; // of all that
    };

    static constexpr std::chrono::milliseconds retry_budget{50}; // of a tick; the rest is looked up in the next one

    KernelName resolve(const ImageId& image, Process& process, uint64_t handle, int depth);
    KernelName search(const ImageId& image, Process& process, uint64_t handle);
    bool has_room(Process& process, size_t bytes);
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
    static const KernelName* known_name(const Process& process, uint64_t handle); // null: none is
    Reader::Outcome look_up(const ImageId& image, Process& process, uint64_t handle);
    static NameQuestion question_about(const ImageId& image, const Process& process, uint64_t handle);
    Reader::Outcome ask(NameQuestion question);
    bool tell(NameQuestion question, int file = -1);
    bool apply(Message message);
    void keep_readable(const std::string& mangled, const std::string& readable);
    void begin_scan(const ScanWanted& wanted, const Fd& file);
    void tell_scanned(const ScanWanted& wanted, const Registrations& found);
    bool advance();
    void retry_unnamed();
    void on_restart();

    std::map<ImageId, Process> processes_;
    std::set<ImageId> puzzling_; // have launched what has no name
    ScanCache cache_;
    std::optional<ScanWanted> scan_; // of a file that the helper has asked for
    Scanner scanner_;
    uint64_t learned_ = 0;                                  // by the helper, when failures were last forgotten
    bool more_ = false;                                     // it has learned since
    bool retry_ = false;                                    // unnamed handles are to be looked up again
    size_t bytes_ = 0;                                      // of all processes
    std::unordered_map<std::string, std::string> readable_; // by mangled name, for all processes
    size_t readable_bytes_ = 0;
    int unsent_fd_ = -1;
    uint64_t lost_ = 0;
    Reader reader_;
};

} // namespace gpusnoop
