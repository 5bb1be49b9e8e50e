// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/dcgm_page.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gpusnoop {
namespace {

constexpr size_t longest_label = 256;
constexpr double mib = 1 << 20;

struct Name {
    std::string_view name;
    Figure figure;
    double unit; // of a Gauges value, in the exporter's
    double most;
    bool instead = false; // of another one, where the page does not have that
};

// The profiling fields are ratios from 0 to 1, GPU_UTIL is in percent and FB_USED in MiB. DCGM 4.6 has named the fields
// anew, and knows both names. MIG instances have no GPU_UTIL; how long their engine was active is as much.
constexpr Name names[] = {
    {"DCGM_FI_PROF_SM_ACTIVE", Figure::sm_active, 1e6, 1},
    {"DCGM_FI_PROF_SM_UTIL_RATIO", Figure::sm_active, 1e6, 1},
    {"DCGM_FI_PROF_SM_OCCUPANCY", Figure::sm_occupancy, 1e6, 1},
    {"DCGM_FI_PROF_SM_OCCUPANCY_RATIO", Figure::sm_occupancy, 1e6, 1},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Figure::tensor_active, 1e6, 1},
    {"DCGM_FI_PROF_TENSOR_UTIL_RATIO", Figure::tensor_active, 1e6, 1},
    {"DCGM_FI_PROF_DRAM_ACTIVE", Figure::dram_active, 1e6, 1},
    {"DCGM_FI_PROF_DRAM_UTIL_RATIO", Figure::dram_active, 1e6, 1},
    {"DCGM_FI_DEV_GPU_UTIL", Figure::gpu_busy, 1e4, 100},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", Figure::gpu_busy, 1e6, 1, true},
    {"DCGM_FI_DEV_FB_USED", Figure::memory_used, mib, 1 << 24},
};

struct Labels {
    std::string uuid, instance;
    bool of_process = false;
};

// The text behind "{", up to what follows "}"; nullopt: it is none.
std::optional<Labels> take_labels(std::string_view& rest)
{
    Labels labels;
    for (;;) {
        rest.remove_prefix(std::min(rest.find_first_not_of(", "), rest.size())); // a blank may follow a comma
        if (rest.empty() || rest.front() == '}')
            break;
        const size_t equals = rest.find("=\"");
        if (equals == std::string_view::npos)
            return std::nullopt;
        const std::string_view name = rest.substr(0, equals);
        rest.remove_prefix(equals + 2);
        std::string value;
        bool closed = false;
        size_t at = 0;
        for (; at < rest.size() && !closed; at++) {
            const bool escaped = rest[at] == '\\' && at + 1 < rest.size();
            closed = !escaped && rest[at] == '"';
            at += escaped;
            if (!closed && value.size() <= longest_label)
                value += rest[at];
        }
        if (!closed)
            return std::nullopt;
        rest.remove_prefix(at);
        if (value.size() > longest_label)
            value.clear(); // of which nothing is believed
        if (name == "UUID" || name == "gpu_uuid")
            labels.uuid = value;
        else if (name == "GPU_I_ID")
            labels.instance = value;
        else if (name == "pid" && !value.empty())
            labels.of_process = true;
    }
    if (rest.empty())
        return std::nullopt;
    rest.remove_prefix(1);
    return labels;
}

std::optional<double> take_value(std::string_view rest)
{
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const bool whole = end == rest.data() + rest.size() || *end == ' ' || *end == '\t' || *end == '\r';
    return error == std::errc() && whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<DcgmKey> key_of(const Labels& labels)
{
    if (labels.uuid.empty() || labels.of_process)
        return std::nullopt;
    DcgmKey key{.uuid = labels.uuid, .gpu_instance = {}};
    if (labels.instance.empty())
        return key;
    uint32_t number = 0;
    const char* const end = labels.instance.data() + labels.instance.size();
    if (std::from_chars(labels.instance.data(), end, number).ptr != end || number > 255)
        return std::nullopt;
    key.gpu_instance = number;
    return key;
}

} // namespace

DcgmPage parse_dcgm_page(std::string_view text)
{
    DcgmPage page;
    std::map<DcgmKey, std::array<bool, figure_count>> differ;
    std::map<DcgmKey, Gauges> instead;
    text = text.substr(0, DcgmPage::largest);
    for (std::string_view left = text; !left.empty();) {
        std::string_view line = left.substr(0, std::min(left.find('\n'), left.size()));
        left.remove_prefix(std::min(line.size() + 1, left.size()));
        const size_t brace = line.find('{');
        const auto* const name = std::ranges::find(names, line.substr(0, brace), &Name::name);
        if (brace == std::string_view::npos || name == std::end(names))
            continue;
        page.series++;
        line.remove_prefix(brace + 1);
        const auto labels = take_labels(line);
        const auto value = labels ? take_value(line) : std::nullopt;
        const auto key = labels ? key_of(*labels) : std::nullopt;
        if (!key || !value || *value < 0 || *value > name->most ||
            (page.devices.size() >= DcgmPage::most_devices && !page.devices.contains(*key))) {
            page.unusable++;
            continue;
        }
        page.devices.try_emplace(*key);
        Gauges& gauges = (name->instead ? instead : page.devices)[*key];
        auto& known = gauges.values[static_cast<size_t>(name->figure)];
        const auto number = static_cast<uint64_t>(std::llround(*value * name->unit));
        // A device's figure is repeated for each pod on it. Those that differ are of pods or processes, and say nothing
        // of the device.
        if (known && *known != number) {
            differ[*key][static_cast<size_t>(name->figure)] = true;
            page.unusable++;
        }
        gauges.set(name->figure, number, MEASURED_BY_DCGM);
    }
    for (const auto& [key, figures] : differ)
        for (size_t i = 0; i < figure_count; i++)
            if (figures[i])
                page.devices[key].values[i].reset(), instead[key].values[i].reset();
    for (const auto& [key, gauges] : instead)
        for (size_t i = 0; i < figure_count; i++)
            page.devices[key].set(static_cast<Figure>(i), gauges.values[i], MEASURED_BY_DCGM);
    return page;
}

} // namespace gpusnoop
