// SPDX-License-Identifier: Apache-2.0
#include "names/registrations.hpp"

#include "reader/message.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpusnoop {

static void fields(auto& each, same_as_const<CallSite> auto& s)
{
    each(s.address, s.window);
}

static void fields(auto& each, same_as_const<Registration> auto& r)
{
    each(r.stub, r.name, r.site);
}

static void fields(auto& each, same_as_const<HandleVariable> auto& h)
{
    each(h.variable, h.stub, h.site);
}

static void fields(auto& each, same_as_const<Registrations> auto& r)
{
    each(r.sites, r.read, r.kernels, r.handles);
}

const Registration* Registrations::kernel(uint64_t stub) const
{
    if (kernels.empty() || stub < kernels.front().stub || stub > kernels.back().stub)
        return nullptr; // fast path: most values that a scan looks up are outside this range
    const auto found = std::ranges::lower_bound(kernels, stub, {}, &Registration::stub);
    return found != kernels.end() && found->stub == stub ? &*found : nullptr;
}

static constexpr uint64_t magic = 0x3276'7367'6b75'7067; // change this when the layout changes

std::string encode(const Registrations& registrations)
{
    return message_of(magic) + message_of(registrations);
}

std::optional<Registrations> decode_registrations(std::span<const char> bytes)
{
    const std::string begin = message_of(magic);
    const std::string_view all(bytes.data(), bytes.size());
    if (!all.starts_with(begin))
        return std::nullopt;
    auto found = read_message<Registrations>(all.substr(begin.size()));
    if (!found || found->kernels.size() > registrations_max || found->handles.size() > registrations_max ||
        !std::ranges::is_sorted(found->kernels, {}, &Registration::stub) ||
        !std::ranges::is_sorted(found->handles, {}, &HandleVariable::variable))
        return std::nullopt;
    return found;
}

Fd to_memfd(const Registrations& registrations)
{
    Fd file(memfd_create("gpusnoop-registrations", MFD_CLOEXEC));
    const std::string bytes = encode(registrations);
    return file && pwrite(file.get(), bytes.data(), bytes.size(), 0) == std::ssize(bytes) ? std::move(file) : Fd();
}

std::optional<Registrations> registrations_in(const Fd& file)
{
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0 || st.st_size < 0 || static_cast<size_t>(st.st_size) > encoded_max)
        return std::nullopt;
    std::vector<char> bytes(static_cast<size_t>(st.st_size));
    const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), 0);
    return got == std::ssize(bytes) ? decode_registrations(bytes) : std::nullopt;
}

} // namespace gpusnoop
