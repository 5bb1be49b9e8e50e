// SPDX-License-Identifier: Apache-2.0
// A hook x the places of a file -> links. Knows the four tiers; nothing else does.
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

// A program, or a pair for entry and return, and the probes it serves. In the object it is called NAME_entry,
// NAME_return and NAME_session; the kernel keeps 15 bytes of that, so NAME has 7 at most.
struct Hook {
    std::string program;
    bool returns = false;         // with a return probe
    std::vector<unsigned> probes; // indices into the tool's probes
    bool always = true;           // false: attached only on Attacher::attach_name_probes()
    std::string_view without{};   // what is not known without it, in a sentence; empty: the tool is nothing without it
    bool sampled = false;         // may be away for a while (Attacher::pause()): its calls are scaled
    std::string_view
        instead_of{}; // the program of a hook that serves these probes, too, where the kernel refuses this one
};

// What keeps a program attached: its destructor detaches.
using Link = std::shared_ptr<void>;
using Links = std::vector<Link>;

Link own_link(bpf_link* link); // as libbpf made it
Link own_link(Fd fd);          // as the kernel did

// Attaches a program to a tracepoint, by its tracepoint_id(). pid 0: of every process. Null with errno if the kernel
// refuses it.
Link attach_tracepoint(const bpf_program* program, uint64_t id, pid_t pid = 0, uint64_t cookie = 0);

void detach(Links links); // all at once

class Linker {
public:
    // To be called between open and load: chooses the programs and their attach types. The hooks stay where they are.
    // step: called between the links of a hook; may throw.
    Linker(bpf_object* object, Tier tier, std::span<const Hook> hooks, std::function<void()> step);

    struct Target {
        const CudaFile& file;
        pid_t pid; // 0: every process
    };
    // Adds to the links even where it throws Error: those that were made before.
    void attach(const Hook& hook, const Target& where, Links& links);

    // How many the links of this hook take.
    size_t descriptors(const Hook& hook, const CudaFile& file) const;

    // What has been attached will be attached once more, before that is detached.
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
    uint32_t events_ = 0; // made so far
};

} // namespace gpusnoop
