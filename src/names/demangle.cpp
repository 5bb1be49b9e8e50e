// SPDX-License-Identifier: Apache-2.0
#include "names/demangle.hpp"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <fmt/format.h>
#include <memory>
#include <optional>

namespace gpusnoop {

namespace {

constexpr std::string_view stub = "__device_stub__";

// The demangler refuses names over 1024 bytes, which kernels of CUTLASS often have. This reads their scopes and leaves
// the template arguments mangled: "cutlass::device_kernel<4TileI6half_t...>".
std::optional<std::string> demangle_scopes(std::string_view name)
{
    name.remove_prefix(2);
    const bool nested = name.starts_with('N');
    name.remove_prefix(nested ? 1 : 0);
    std::string scopes;
    do {
        size_t length = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), length);
        if (error != std::errc())
            break;
        name.remove_prefix(static_cast<size_t>(end - name.data()));
        if (length == 0 || length > name.size())
            return {};
        const std::string_view scope = name.substr(0, length);
        scopes += scopes.empty() ? "" : "::";
        scopes += scope.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : scope;
        name.remove_prefix(length);
    } while (nested);
    if (scopes.empty() || !name.starts_with('I'))
        return {};
    return fmt::format("{}<{}>", scopes, name.substr(1));
}

std::optional<std::string> demangle_itanium(std::string_view name)
{
    if (!name.starts_with("_Z") || name.size() > mangled_max || name.find('\0') != std::string_view::npos)
        return {};
    constexpr size_t demangler_max = 1024;
    if (name.size() > demangler_max)
        return demangle_scopes(name);
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
    if (!text || std::strlen(text.get()) > readable_max)
        return {};
    return text.get();
}

} // namespace

bool may_be_mangled(std::string_view name)
{
    return name.starts_with("_Z") || name.find(stub) != std::string_view::npos;
}

std::string demangle(std::string_view name)
{
    std::string text = demangle_itanium(name).value_or(std::string(name));
    // nvcc's stub is a local function with the kernel's mangled name in its own.
    if (text.starts_with("__device_stub__Z"))
        if (auto kernel =
                demangle_itanium(std::string_view(text).substr(stub.size() - 1, text.find('(') - stub.size() + 1)))
            return *kernel;

    auto in_identifier = [&](size_t at) {
        return std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_';
    };
    for (size_t at = text.find(stub); at != std::string::npos; at = text.find(stub, at + 1)) {
        bool starts = at == 0 || !in_identifier(at - 1);
        if (starts && at + stub.size() < text.size() && in_identifier(at + stub.size()))
            text.erase(at, stub.size());
    }
    return text;
}

} // namespace gpusnoop
