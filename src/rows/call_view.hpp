// SPDX-License-Identifier: Apache-2.0
// Options and grouping (--by) that call-counting tools share.
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

// Bit of WhoSeen::vendors; 0 for ioctls of a kernel driver, which belong to no API.
inline uint8_t vendor_bit(const call_key& call)
{
    return call.layer == LAYER_KERNEL ? uint8_t{0}
                                      : static_cast<uint8_t>(1 << static_cast<unsigned>(vendor_of(call.layer)));
}

// Dimensions of --by that tools share.
struct CallView {
    WhoView who;
    bool stream = false;
    bool device = false;
    // if set, `device` groups by physical GPU instead of CUDA's device number
    std::function<Gpu(const call_key&)> gpu_of{};
    bool function = false; // the called API function
    bool layer = false;
    bool vendor = false; // GPU vendor, derived from the API
    bool result = false;
    bool stack = false;
    bool line = false;            // line of the user's program that makes the call
    bool code = false;            // function of the user's program that makes the call
    CodePlaces* places = nullptr; // numbers of the stacks, lines or functions in the current report; null: stacks are
                                  // grouped by their ids

    bool by_place() const { return stack || line || code; }
};

// A dimension of --by, and the flag to set for it.
using Dimension = std::pair<std::string_view, bool*>;

// Calls set(name) for each name of a list such as "kernel,pid". Throws UsageError if set() returns false; its message
// contains `all`, the list of valid names.
void parse_dimensions(std::string_view list, std::string_view all, const std::function<bool(std::string_view)>& set);

// Parses a list such as "kernel,pid" into the view and the tool's own dimensions; throws UsageError. of_functions: also
// accept stream, device, api, line and function, which only calls of probed functions have.
void parse_by(std::string_view list, CallView& view, std::span<const Dimension> own, bool of_functions = true);

// Parses the value of -H. Returns its position in `names`, counted from 1, or 0 if the value is empty. Throws
// UsageError if the value is not in `names`.
size_t measure_number(std::string_view asked, std::span<const std::string_view> names);

struct CallSettings {
    // true if the tool counts calls of probed functions; false for other events, which have no layer, stream or CUDA
    // result
    bool of_functions = true;
    CallView view;
    std::optional<std::string> by;
    std::string api = "driver";
    bool driver = true;   // count calls of the driver API
    bool runtime = false; // count calls of the runtime API
    std::string measure;  // value of -H; empty: no histogram
    StackView stacks;
    bool events = false;
    bool latency = false;
    std::optional<double> max_overhead; // maximum probe overhead, in percent of a process's CPU time
    std::string sort;                   // column to sort by: its JSON key or header

    bool histogram() const { return !measure.empty(); }

    // Sets layers and view from the shared options.
    void apply(const Options& options);
};

// Key of a group; unused dimensions are empty.
struct CallKey {
    static constexpr bool has_place = true; // see HasPlace in rows/report.hpp

    WhoKey who;
    uint64_t stream = 0;
    uint8_t device = DEVICE_UNKNOWN;
    Gpu gpu; // replaces device if CallView::gpu_of is set
    uint8_t layer = 0;
    Vendor vendor = Vendor::nvidia;
    uint16_t function = 0;
    int32_t result = 0;
    int32_t stack = -1;
    uint64_t caller = 0;
    int32_t place = -1; // replaces stack and caller if CallView::places is set
    auto operator<=>(const CallKey&) const = default;
};

CallKey call_group(const CallView& view, Processes& processes, const call_key& key);

// Context of a tool's table: the data that columns read in addition to a row's key and group.
template<class Settings>
struct CallContext {
    const Options& options;
    const Settings& settings;
    Processes& processes;
    double seconds = 0;            // time that the table covers
    std::span<const Probe> probes; // call_key::function is an index into this list, plus 1
    // returns the stack to print below a row; empty: no stacks
    std::function<Frames(const CallKey&, const WhoSeen&)> frames{};

    const WhoView& who() const { return settings.view.who; }
    bool results() const { return settings.latency || options.failed_only; } // true if results of calls are recorded
};

} // namespace gpusnoop
