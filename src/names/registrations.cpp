// SPDX-License-Identifier: Apache-2.0
#include "names/registrations.hpp"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr uint64_t magic = 0x3176'7367'6b75'7067; // another number for another layout
constexpr uint64_t window_bits = 16;

struct Header {
    uint64_t magic;
    uint64_t sites;
    uint64_t read;
    uint64_t kernels;
    uint64_t handles;
};

// A kernel or a handle variable.
struct Entry {
    uint64_t first;
    uint64_t second;
    uint64_t site; // its address, and the window in the lowest bits
};

void append(std::string& to, const auto& what)
{
    to.append(reinterpret_cast<const char*>(&what), sizeof(what));
}

uint64_t packed(const CallSite& site)
{
    return site.address << window_bits | site.window;
}

CallSite unpacked(uint64_t site)
{
    return {site >> window_bits, static_cast<uint32_t>(site & ((1U << window_bits) - 1))};
}

} // namespace

const Registration* Registrations::kernel(uint64_t stub) const
{
    if (kernels.empty() || stub < kernels.front().stub || stub > kernels.back().stub)
        return nullptr; // nearly all that is asked for while a scan goes on
    const auto found = std::ranges::lower_bound(kernels, stub, {}, &Registration::stub);
    return found != kernels.end() && found->stub == stub ? &*found : nullptr;
}

std::string encode(const Registrations& registrations)
{
    std::string bytes;
    append(bytes, Header{magic, registrations.sites, registrations.read, registrations.kernels.size(),
                         registrations.handles.size()});
    for (const Registration& r : registrations.kernels)
        append(bytes, Entry{r.stub, r.name, packed(r.site)});
    for (const HandleVariable& h : registrations.handles)
        append(bytes, Entry{h.variable, h.stub, packed(h.site)});
    return bytes;
}

std::optional<Registrations> decode_registrations(std::span<const char> bytes)
{
    Header header{};
    if (bytes.size() < sizeof(header))
        return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof(header));
    bytes = bytes.subspan(sizeof(header));
    if (header.magic != magic || header.kernels > registrations_max || header.handles > registrations_max ||
        bytes.size() != (header.kernels + header.handles) * sizeof(Entry))
        return std::nullopt;
    const auto next = [&bytes] {
        Entry entry{};
        std::memcpy(&entry, bytes.data(), sizeof(entry));
        bytes = bytes.subspan(sizeof(entry));
        return entry;
    };
    Registrations result;
    result.sites = header.sites;
    result.read = header.read;
    for (uint64_t i = 0; i < header.kernels; i++) {
        const Entry e = next();
        result.kernels.push_back({e.first, e.second, unpacked(e.site)});
    }
    for (uint64_t i = 0; i < header.handles; i++) {
        const Entry e = next();
        result.handles.push_back({e.first, e.second, unpacked(e.site)});
    }
    if (!std::ranges::is_sorted(result.kernels, {}, &Registration::stub) ||
        !std::ranges::is_sorted(result.handles, {}, &HandleVariable::variable))
        return std::nullopt;
    return result;
}

Fd in_file(const Registrations& registrations)
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
