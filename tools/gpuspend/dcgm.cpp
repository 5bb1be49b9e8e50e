// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/dcgm.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/options.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <fmt/format.h>
#include <strings.h>
#include <sys/stat.h>
#include <utility>

namespace gpusnoop {

namespace {

constexpr uint64_t timeout_ns = 10'000'000'000; // same as Prometheus's default scrape timeout
constexpr size_t max_header_size = 64 << 10;

} // namespace

LoopbackRequest::Parameters http_request(std::string_view option, std::string_view url, size_t max_size)
{
    constexpr std::string_view scheme = "http://";
    std::string_view rest = url.substr(std::min(scheme.size(), url.size()));
    const std::string_view authority = rest.substr(0, std::min(rest.find('/'), rest.size()));
    rest.remove_prefix(authority.size());
    const size_t colon = authority.rfind(':');
    const bool has_port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
    const std::string_view host = authority.substr(0, has_port ? colon : authority.size());
    const std::string_view path = rest.empty() ? "/" : rest;
    LoopbackRequest::Parameters parameters{.port = 80,
                                           .family = host == "localhost" ? AF_UNSPEC
                                                     : host == "[::1]"   ? AF_INET6
                                                                         : AF_INET,
                                           .request = {},
                                           .max_bytes = max_size + max_header_size,
                                           .timeout_ns = timeout_ns};
    bool good = url.starts_with(scheme) && (parameters.family != AF_INET || host == "127.0.0.1");
    if (has_port) {
        const std::string_view port = authority.substr(colon + 1);
        parameters.port = parse_number<decltype(parameters.port)>(port).value_or(0);
        good &= parameters.port != 0;
    }
    good &= std::ranges::all_of(path, [](char c) { return c > ' ' && c < 127; });
    if (!good)
        throw UsageError(fmt::format("{}: '{}' is not a URL on this machine; try http://localhost:9400/metrics", option,
                                     printable(url.substr(0, 200))));
    // HTTP/1.0 is used because its body is not chunked, and ends when the connection is closed.
    parameters.request = fmt::format("GET {} HTTP/1.0\r\nHost: {}\r\nAccept: text/plain\r\n\r\n", path, authority);
    return parameters;
}

LoopbackResponse http_body(std::string_view answer)
{
    const auto no = [](std::string why) { return LoopbackResponse{.text = {}, .error = std::move(why)}; };
    const size_t head_end = answer.find("\r\n\r\n");
    if (!answer.starts_with("HTTP/1.") || head_end == std::string_view::npos || head_end > max_header_size)
        return no("the listener does not speak HTTP");
    const std::string_view head = answer.substr(0, head_end), body = answer.substr(head_end + 4);
    const std::string_view status = head.substr(0, head.find("\r\n"));
    if (status.substr(std::min(status.find(' '), status.size())).substr(0, 4) != " 200")
        return no(fmt::format("it answers '{}'", printable(status.substr(0, 100))));
    for (std::string_view rest = head; !rest.empty();) {
        const std::string_view line = rest.substr(0, std::min(rest.find("\r\n"), rest.size()));
        rest.remove_prefix(std::min(line.size() + 2, rest.size()));
        const auto is = [&](std::string_view key) {
            return line.size() > key.size() && strncasecmp(line.data(), key.data(), key.size()) == 0;
        };
        constexpr std::string_view length = "content-length:";
        if (is("transfer-encoding:"))
            return no("its answer is chunked, although the request was HTTP/1.0");
        if (!is(length))
            continue;
        const size_t from = std::min(line.find_first_not_of(' ', length.size()), line.size());
        if (leading_number<size_t>(line.substr(from)).value_or(0) != body.size())
            return no("its answer is truncated");
    }
    return {.text = std::string(body)};
}

namespace {

constexpr size_t max_label_length = 256;
constexpr double mib = 1 << 20;

struct Name {
    std::string_view name;
    Figure figure;
    double unit; // factor from the exporter's unit to the unit of Gauges
    double max;
    bool fallback = false; // used only if the page has no other series for the same figure
};

// The profiling fields are ratios from 0 to 1, GPU_UTIL is in percent and FB_USED in MiB. DCGM 4.6 renamed the fields,
// and supports both names. MIG instances have no GPU_UTIL; GR_ENGINE_ACTIVE is equivalent.
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

// Parses the labels that follow "{", and removes them and the "}" from the text. nullopt if they are malformed.
std::optional<Labels> parse_labels(std::string_view& rest)
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
            if (!closed && value.size() <= max_label_length)
                value += rest[at];
        }
        if (!closed)
            return std::nullopt;
        rest.remove_prefix(at);
        if (value.size() > max_label_length)
            value.clear(); // too long to be valid
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

std::optional<double> parse_value(std::string_view rest)
{
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    const auto value = consume_number<double>(rest);
    const bool whole = rest.empty() || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r';
    return value && whole && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<DcgmKey> key_of(const Labels& labels)
{
    if (labels.uuid.empty() || labels.of_process)
        return std::nullopt;
    DcgmKey key{.uuid = labels.uuid, .gpu_instance = {}};
    if (labels.instance.empty())
        return key;
    key.gpu_instance = parse_number<uint32_t>(labels.instance);
    return key.gpu_instance && *key.gpu_instance <= 255 ? std::optional(key) : std::nullopt;
}

} // namespace

DcgmPage parse_dcgm_page(std::string_view text)
{
    DcgmPage page;
    std::map<DcgmKey, std::array<bool, figure_count>> differ;
    std::map<DcgmKey, Gauges> fallback;
    text = text.substr(0, DcgmPage::max_size);
    for (std::string_view left = text; !left.empty();) {
        std::string_view line = next_part(left, '\n');
        const size_t brace = line.find('{');
        const auto* const name = std::ranges::find(names, line.substr(0, brace), &Name::name);
        if (brace == std::string_view::npos || name == std::end(names))
            continue;
        page.series++;
        line.remove_prefix(brace + 1);
        const auto labels = parse_labels(line);
        const auto value = labels ? parse_value(line) : std::nullopt;
        const auto key = labels ? key_of(*labels) : std::nullopt;
        if (!key || !value || *value < 0 || *value > name->max ||
            (page.devices.size() >= DcgmPage::max_devices && !page.devices.contains(*key))) {
            page.unusable++;
            continue;
        }
        page.devices.try_emplace(*key);
        Gauges& gauges = (name->fallback ? fallback : page.devices)[*key];
        auto& known = gauges.values[static_cast<size_t>(name->figure)];
        const auto number = static_cast<uint64_t>(std::llround(*value * name->unit));
        // A device's value is repeated for each pod on the device. If the values differ, they belong to pods or
        // processes, and the device's value is not known.
        if (known && *known != number) {
            differ[*key][static_cast<size_t>(name->figure)] = true;
            page.unusable++;
        }
        gauges.set(name->figure, number, MEASURED_BY_DCGM);
    }
    for (const auto& [key, figures] : differ)
        for (size_t i = 0; i < figure_count; i++)
            if (figures[i])
                page.devices[key].values[i].reset(), fallback[key].values[i].reset();
    for (const auto& [key, gauges] : fallback)
        for (size_t i = 0; i < figure_count; i++)
            page.devices[key].set(static_cast<Figure>(i), gauges.values[i], MEASURED_BY_DCGM);
    return page;
}

namespace {

constexpr uint64_t second = 1'000'000'000;
constexpr uint64_t poll_interval_ns = 5 * second;
// Three of the exporter's default intervals (DCGM_EXPORTER_INTERVAL, 30 s).
constexpr uint64_t max_age_ns = 90 * second;

} // namespace

Dcgm::Dcgm(const std::string& where) : where_(where)
{
    if (where.find("://") != std::string::npos)
        service_.emplace(http_request("--dcgm", where, DcgmPage::max_size));
}

void Dcgm::refresh(uint64_t now_ns)
{
    if (now_ns >= next_ns_) {
        next_ns_ = now_ns + poll_interval_ns;
        if (service_)
            service_->start(now_ns);
        else
            read_file(now_ns);
    }
    if (service_) {
        if (auto answer = service_->poll(now_ns)) {
            if (answer->error.empty())
                answer = http_body(answer->text);
            answer->error.empty() ? apply(answer->text, now_ns) : fail(answer->error);
        }
    }
    if (page_ns_ && now_ns > page_ns_ + max_age_ns)
        page_ = {};
}

void Dcgm::read_file(uint64_t now_ns)
{
    const Fd file(open(where_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0)
        return fail(errno_text(errno));
    if (!S_ISREG(st.st_mode))
        return fail("it is not a regular file");
    const auto changed_ns = static_cast<uint64_t>(st.st_mtim.tv_sec) * second;
    if (const uint64_t wall_ns = clock_ns(CLOCK_REALTIME); wall_ns > changed_ns + max_age_ns)
        return fail(fmt::format("it is too old, last written {} s ago", (wall_ns - changed_ns) / second));
    const auto text = read_text(file, DcgmPage::max_size);
    if (!text)
        return fail(errno_text(errno));
    apply(*text, now_ns);
}

void Dcgm::apply(const std::string& text, uint64_t now_ns)
{
    if (text.size() > DcgmPage::max_size)
        return fail(fmt::format("it is larger than {}", prose_bytes(DcgmPage::max_size)));
    DcgmPage page = parse_dcgm_page(text);
    if (page.devices.empty())
        return fail("it has no DCGM series with a GPU UUID");
    page_ = std::move(page);
    page_ns_ = now_ns;
    error_.clear();
}

void Dcgm::fail(std::string why)
{
    page_ = {};
    error_ = std::move(why);
    if (!std::exchange(warned_, true))
        warn(fmt::format("cannot use DCGM's page '{}': {}", printable(where_), error_));
}

const Gauges* Dcgm::of(std::string_view uuid, std::optional<uint32_t> gpu_instance) const
{
    const auto found = page_.devices.find({std::string(uuid), gpu_instance});
    return found == page_.devices.end() ? nullptr : &found->second;
}

} // namespace gpusnoop
