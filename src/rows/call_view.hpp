// SPDX-License-Identifier: Apache-2.0
// What was asked for and what is told apart, in all tools that count calls.
#pragma once

#include "attach/probes.hpp"
#include "base/options.hpp"
#include "bpf/shared/call.h"
#include "gpu/gpu.hpp"
#include "names/frames.hpp"
#include "names/user_stacks.hpp"
#include "rows/who.hpp"

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gpusnoop {

class CodePlaces;

enum class Vendor : uint8_t { nvidia, amd };

inline Vendor vendor_of(uint8_t layer)
{
    return layer == LAYER_HIP ? Vendor::amd : Vendor::nvidia;
}

// Of WhoSeen::vendors. Calls into a kernel's driver are none of an API.
inline uint8_t vendor_bit(const call_key& call)
{
    return call.layer == LAYER_KERNEL ? uint8_t{0}
                                      : static_cast<uint8_t>(1 << static_cast<unsigned>(vendor_of(call.layer)));
}

// What is told apart, beside what is a tool's own.
struct CallView {
    WhoView who;
    bool stream = false;
    bool device = false;
    std::function<Gpu(const call_key&)>
        gpu_of{}; // in place of CUDA's numbers of devices, where the machine's are known
    bool function = false;
    bool layer = false;
    bool vendor = false; // of the GPU, as far as the API tells
    bool result = false;
    bool stack = false;
    bool line = false;            // of the program's own code, that the call comes from
    bool code = false;            // the same by function
    CodePlaces* places = nullptr; // of the report; without, stacks are told apart by their numbers

    bool by_place() const { return stack || line || code; }
};

// A dimension of --by, and what to set for it.
using Dimension = std::pair<std::string_view, bool*>;

// Passes each name of "kernel,pid" to `set`. Throws UsageError with the list of all names if that returns false.
void parse_dimensions(std::string_view list, std::string_view all, const std::function<bool(std::string_view)>& set);

// Parses "kernel,pid" into the view and a tool's own dimensions; throws UsageError. of_functions: so are stream, device
// and api, which calls of the probe table have.
void parse_by(std::string_view list, CallView& view, std::span<const Dimension> own, bool of_functions = true);

// Which of these -H asks for, counted from 1; 0: none. Throws UsageError.
size_t measure_number(std::string_view asked, std::span<const std::string_view> names);

struct CallSettings {
    bool of_functions = true; // of the probe table: calls have layers, streams and CUDA's results
    CallView view;
    std::optional<std::string> by;
    std::string api = "driver";
    bool driver = true; // layers that are counted
    bool runtime = false;
    std::string measure; // of the histogram, by name; empty: none
    StackView stacks;    // how they are shown
    bool events = false;
    bool latency = false;
    std::optional<double> max_overhead; // percent of what a process uses, that its probes may take
    std::string sort;                   // JSON key or header of a column

    bool histogram() const { return !measure.empty(); }

    // What the options that all of these tools have make of the layers and the view.
    void apply(const Options& options);
};

// What a group stands for; what the view does not tell apart is empty.
struct CallKey {
    static constexpr bool has_place = true; // its calls come from functions that are probed

    WhoKey who;
    uint64_t stream = 0;
    uint8_t device = DEVICE_UNKNOWN;
    Gpu gpu; // in place of the device where the view knows GPUs
    uint8_t layer = 0;
    Vendor vendor = Vendor::nvidia;
    uint16_t function = 0;
    int32_t result = 0;
    int32_t stack = -1;
    uint64_t caller = 0;
    int32_t place = -1; // in place of both, where the view has places
    auto operator<=>(const CallKey&) const = default;
};

CallKey call_group(const CallView& view, Processes& processes, const call_key& key);

// What a tool's table is made of, beside its groups.
template<class Settings>
struct CallContext {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0;                                             // that the table covers
    std::span<const Probe> probes;                                  // that functions are numbered by
    std::function<Frames(const CallKey&, const WhoSeen&)> frames{}; // below a row; none if empty

    const WhoView& who() const { return settings.view.who; }
    bool results() const { return settings.latency || options.failed_only; } // are known
};

} // namespace gpusnoop
