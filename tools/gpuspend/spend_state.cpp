// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/spend_state.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <fmt/format.h>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr std::string_view heading = "gpuspend state 2", heading_prefix = heading.substr(0, heading.rfind(' '));
constexpr size_t max_state_size = 256 << 20;
constexpr size_t max_lines = 1'000'000;

// The fields of each struct, for writing and parsing.
void fields(auto&& each, auto& u, Used*)
{
    each(u.launches, u.graph_kernels, u.bytes, u.wait_ns, u.busy_ns, u.byte_ns);
}

void fields(auto&& each, auto& t, Tenant*)
{
    each(t.pid, t.start_ns, t.pod_namespace, t.pod, t.container, t.user, t.comm, t.cgroup, t.team, t.owner);
}

void fields(auto&& each, auto& a, Account*)
{
    each(a.used_ns, a.idle_ns, a.allocated_ns, a.resident_ns, a.driving_ns, a.shared_ns, a.equally_ns, a.sources);
    fields(each, a.used, static_cast<Used*>(nullptr));
    for (auto& figure : a.efficiency.figures)
        each(figure.ns, figure.sum);
    each(a.efficiency.shared_ns, a.efficiency.sources);
}

// Fields are separated by tabs; control characters and % in text are written as %XX.
struct Writer {
    std::string& out;

    void operator()(const auto&... values) { (put(values), ...); }

private:
    void put(const std::string& text)
    {
        out += '\t';
        for (const char c : text)
            if (c == '%' || static_cast<unsigned char>(c) < ' ')
                out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
            else
                out += c;
    }
    void put(std::integral auto number)
    {
        out += '\t';
        out += fmt::format_int(number).c_str();
    }
    void put(uint128 number)
    {
        put(static_cast<uint64_t>(number >> 64));
        put(static_cast<uint64_t>(number));
    }
    void put(const std::optional<uint64_t>& number) { put(number ? fmt::to_string(*number) : std::string("-")); }
    template<class T>
    requires std::is_class_v<T>
    void put(const T& value) { fields(*this, value, static_cast<T*>(nullptr)); }
};

// Parses the fields of a line in order. After the last field, good() returns false if any field was invalid, or if the
// line had too few or too many.
class Fields {
public:
    explicit Fields(std::string_view line) : rest_(line) { next_field(); }

    bool good() const { return good_ && end_; }
    bool at_end() const { return end_; }

    void operator()(auto&... values) { (parse(values), ...); }

private:
    std::string_view next_field()
    {
        if (end_) {
            good_ = false;
            return {};
        }
        const size_t end = std::min(rest_.find('\t'), rest_.size());
        const std::string_view field = rest_.substr(0, end);
        end_ = end == rest_.size();
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        return field;
    }
    template<class Number>
    void number(std::string_view field, Number& value, int base = 10)
    {
        const auto parsed = parse_number<Number>(field, base);
        value = parsed.value_or(value);
        good_ &= parsed.has_value();
    }
    void parse(uint64_t& value) { number(next_field(), value); }
    void parse(uint8_t& value) { number(next_field(), value); }
    void parse(uint32_t& value) { number(next_field(), value); }
    void parse(uint128& value)
    {
        uint64_t high = 0, low = 0;
        parse(high);
        parse(low);
        value = uint128{high} << 64 | low;
    }
    void parse(std::optional<uint64_t>& value)
    {
        const std::string_view field = next_field();
        if (field != "-")
            number(field, value.emplace());
    }
    void parse(std::string& text)
    {
        const std::string_view field = next_field();
        for (size_t i = 0; i < field.size(); i++) {
            if (field[i] != '%') {
                text += field[i];
                continue;
            }
            uint8_t byte = 0;
            number(field.substr(i + 1, 2), byte, 16);
            good_ &= field.size() - i > 2;
            text += static_cast<char>(byte);
            i += 2;
        }
    }
    template<class T>
    requires std::is_class_v<T>
    void parse(T& value) { fields(*this, value, static_cast<T*>(nullptr)); }

    std::string_view rest_;
    bool good_ = true, end_ = false;
};

[[noreturn]] void fail(const std::string& path, std::string_view what, int error)
{
    throw Error(fmt::format("state file '{}' cannot be {}: {}", path, what, errno_text(error)));
}

} // namespace

uint64_t SpendState::unseen_ns() const
{
    const uint64_t all = saved_ns > began_ns ? saved_ns - began_ns : 0;
    return all > ledger.ns() ? all - ledger.ns() : 0;
}

uint64_t SpendState::saved_at(uint64_t wall_ns)
{
    const uint64_t latest_ns = std::max(began_ns, saved_ns), back_ns = latest_ns - std::min(latest_ns, wall_ns);
    const uint64_t covered_from_ns = wall_ns - std::min(wall_ns, ledger.ns());
    began_ns = began_ns ? std::min(began_ns - std::min(began_ns, back_ns), covered_from_ns) : covered_from_ns;
    saved_ns = wall_ns;
    return back_ns;
}

std::string SpendState::text() const
{
    std::string out(heading);
    size_t lines = 1;
    Writer write{out};
    const auto line = [&](std::string_view kind, const auto&... values) {
        out.append("\n").append(kind);
        lines++;
        write(values...);
    };
    line("view", view, std::string(split_name(ledger.split_)));
    line("time", began_ns, saved_ns, ledger.ns_);
    for (const auto& [key, device] : ledger.devices_) {
        line("device", key.id, key.price, device.model, device.parent, device.ns, device.unallocated_ns);
        for (const auto& [tenant, account] : device.tenants)
            line("account", account, tenant);
    }
    for (const auto& [tenant, account] : ledger.tenants_) {
        line("tenant", account.elsewhere, account.holding_ns, account.quiet_ns, account.devices, tenant);
        for (const std::string& pod : account.pods)
            write(pod);
    }
    out += fmt::format("\nend\t{}\n", lines);
    return out;
}

SpendState SpendState::of(std::string_view text, const std::string& file)
{
    SpendState state;
    size_t lines = 0;
    bool whole = false, good = text.starts_with(std::string(heading) + '\n');
    DeviceAccount* device = nullptr;
    std::map<const DeviceAccount*, uint128> sums;
    while (good && !text.empty() && !whole && lines < max_lines) {
        const std::string_view line = next_part(text, '\n');
        const std::string_view kind = line.substr(0, line.find('\t'));
        Fields from(line);
        if (kind == "view") {
            std::string split;
            from(state.view, split);
            for (const SplitBy by : {SplitBy::launches, SplitBy::busy, SplitBy::memory})
                if (split_name(by) == split)
                    state.ledger.split_ = by;
            good = from.good() && split_name(state.ledger.split_) == split;
        } else if (kind == "time") {
            from(state.began_ns, state.saved_ns, state.ledger.ns_);
            good = from.good();
        } else if (kind == "device") {
            DeviceKey key;
            DeviceAccount account;
            from(key.id, key.price, account.model, account.parent, account.ns, account.unallocated_ns);
            good = from.good();
            device = &state.ledger.devices_[key];
            good &= device->tenants.empty() && !device->ns;
            *device = std::move(account);
            sums[device] = device->unallocated_ns;
        } else if (kind == "account") {
            Account account;
            Tenant tenant;
            from(account, tenant);
            good = from.good() && device && !device->tenants.contains(tenant);
            if (good) {
                sums[device] += uint128{account.used_ns} + account.idle_ns;
                device->tenants[tenant] = account;
            }
        } else if (kind == "tenant") {
            TenantAccount account;
            Tenant tenant;
            from(account.elsewhere, account.holding_ns, account.quiet_ns, account.devices, tenant);
            while (!from.at_end() && account.pods.size() < TenantAccount::max_pods) {
                std::string pod;
                from(pod);
                account.pods.insert(pod);
            }
            good = from.good();
            state.ledger.tenants_[tenant] = std::move(account);
        } else if (kind == "end") {
            uint64_t count = 0;
            from(count);
            good = from.good() && count == lines && text.empty();
            whole = true;
        } else {
            good = lines == 0;
        }
        lines++;
    }
    good &= whole;
    for (const auto& [account, sum] : sums)
        good &= account->ns == sum;
    if (!good)
        throw Error(fmt::format("'{}' is not a state file of gpuspend, or it is damaged", file),
                    "name another file (--state); this one is not changed");
    return state;
}

StateFile::StateFile(std::string path)
    : path_(std::move(path), "state", heading_prefix), lock_(path_.open(0600, ".lock"))
{
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
        throw Error(fmt::format("state file '{}' is in use by another run", printable(path_.path())),
                    "end that run, or name another file (--state)");
}

std::optional<SpendState> StateFile::read() const
{
    const Fd file = path_.open_existing();
    if (!file)
        return std::nullopt;
    const std::string& path = path_.path();
    struct stat st {};
    if (fstat(file.get(), &st) != 0)
        fail(path, "read", errno);
    if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
        throw Error(fmt::format("state file '{}' belongs to another user, or is writable by others", path));
    const auto text = read_text(file, max_state_size);
    if (!text)
        fail(path, "read", errno);
    return SpendState::of(*text, path);
}

void StateFile::write(const SpendState& state) const
{
    path_.replace(state.text(), 0600, Durable::yes);
}

} // namespace gpusnoop
