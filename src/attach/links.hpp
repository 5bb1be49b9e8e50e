// SPDX-License-Identifier: Apache-2.0
// Attaches a hook's BPF programs to the functions of a file, in any of the four tiers (tier.hpp).
#pragma once

#include "attach/targets.hpp"
#include "attach/tier.hpp"
#include "base/fd.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

struct bpf_link;
struct bpf_object;
struct bpf_program;

namespace gpusnoop {

// One BPF program, or an entry and a return program, and the probes to which they are attached. The programs of the BPF
// object are named NAME_entry, NAME_return and NAME_session. The kernel keeps only 15 bytes of a program name, and
// "_session" takes 8 of them. So NAME may have at most 7 bytes.
struct Hook {
    std::string program;
    bool returns = false;         // true if return probes are needed, too
    std::vector<unsigned> probes; // indices into the tool's probes
    bool always = true;           // if false, attached on demand by Attacher::attach_name_probes()
    // Message about what the user loses if the kernel refuses the program. Empty if the tool cannot run without it.
    std::string_view without{};
    bool sampled = false;          // the probes may be paused, so that only a sample of calls is traced (pause())
    std::string_view instead_of{}; // a more general program, which takes over the probes if the kernel refuses this one
};

// Keeps a program attached; its destructor detaches it.
using Link = std::shared_ptr<void>;
using Links = std::vector<Link>;

Link own_link(bpf_link* link); // takes ownership of a link from libbpf
Link own_link(Fd fd);          // takes ownership of a link from BPF_LINK_CREATE

// Attaches a program to the tracepoint with this id (tracepoint_id()) for one process, or for all if pid is 0. If the
// kernel refuses, returns null and sets errno.
Link attach_tracepoint(const bpf_program* program, uint64_t id, pid_t pid = 0, uint64_t cookie = 0);

void detach(Links links); // detaches in parallel

class Linker {
public:
    // Construct it after the BPF object is opened and before it is loaded, because the constructor chooses which
    // programs are loaded and their attach types. hooks: must outlive the object. step: called repeatedly while
    // attach() creates many links; may throw.
    Linker(bpf_object* object, Tier tier, std::span<const Hook> hooks, std::function<void()> step);

    struct Target {
        const CudaFile& file;
        pid_t pid; // 0: every process
    };
    // Attaches the hook to the file and appends the new links to `links`. If it throws Error, `links` keeps those made
    // before the error.
    void attach(const Hook& hook, const Target& where, Links& links);

    // Number of descriptors that the links of this hook need.
    size_t descriptors(const Hook& hook, const CudaFile& file) const;

    // After this call, attach() marks its probes as second attachments (COOKIE_SECOND). The functions' first probes are
    // still attached, and the BPF programs must distinguish them from the second ones.
    void begin_second_attachment() { second_ = true; }

private:
    void choose_programs(std::span<const Hook> hooks);
    bpf_program* program(const Hook& hook, std::string_view suffix) const;
    uint64_t cookie(const Hook& hook, const CudaFile& file, uint32_t number) const;
    Link attach_multi(const Hook& hook, std::string_view suffix, int attach_type, bool on_return,
                      const std::vector<Place>& places, const Target& where);
    Link attach_event(const Hook& hook, bool on_return, const std::vector<Place>& places, const Target& where);
    Link attach_perf(const Hook& hook, bool on_return, const Place& place, const Target& where);

    bpf_object* object_;
    std::span<const Hook> hooks_;
    Tier tier_;
    std::function<void()> step_;
    bool second_ = false;
    std::optional<Tracefs> tracefs_;
    uint32_t events_ = 0; // number of uprobe events made so far
};

} // namespace gpusnoop
