// SPDX-License-Identifier: Apache-2.0
#include "names/demangle.hpp"

#include "base/text.hpp"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <vector>

namespace gpusnoop {

namespace {

constexpr std::string_view stub_prefix = "__device_stub__";

constexpr size_t demangler_max = 1024; // bytes; __cxa_demangle refuses longer names, such as those of CUTLASS

std::optional<std::string> demangle_short(const std::string& name)
{
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                      std::free);
    if (!text || std::strlen(text.get()) > readable_max)
        return {};
    return text.get();
}

// Demangles a name that is too long for the demangler: replaces its scopes by short placeholders, demangles the shorter
// name, and puts the scopes back. If the shorter name is still too long, its template arguments stay mangled:
// "cutlass::device_kernel<4TileI6half_t...>".
std::optional<std::string> demangle_long(std::string_view name)
{
    constexpr size_t scopes_max = 26;
    name.remove_prefix(2);
    const bool nested = name.starts_with('N');
    name.remove_prefix(nested ? 1 : 0);
    std::vector<std::string> scopes;
    do {
        const auto number = consume_number<size_t>(name);
        if (!number)
            break;
        const size_t length = *number;
        if (length == 0 || length > name.size() || scopes.size() == scopes_max)
            return {};
        const std::string_view scope = name.substr(0, length);
        scopes.emplace_back(scope.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : scope);
        name.remove_prefix(length);
    } while (nested);
    if (scopes.empty())
        return {};
    std::string brief = nested ? "_ZN" : "_Z";
    for (size_t i = 0; i < scopes.size(); i++)
        brief += {'2', '\x01', static_cast<char>('A' + i)};
    brief += name;
    auto text = brief.size() <= demangler_max ? demangle_short(brief) : std::nullopt;
    if (!text)
        return name.starts_with('I') ? std::optional(fmt::format("{}<{}>", fmt::join(scopes, "::"), name.substr(1)))
                                     : std::nullopt;
    for (size_t at = 0; (at = text->find('\x01', at)) != std::string::npos && text->size() <= readable_max;) {
        const auto scope = at + 1 < text->size() ? static_cast<size_t>((*text)[at + 1] - 'A') : scopes_max;
        if (scope >= scopes.size())
            return {};
        text->replace(at, 2, scopes[scope]);
        at += scopes[scope].size();
    }
    return text->size() <= readable_max ? text : std::nullopt;
}

std::optional<std::string> demangle_itanium(std::string_view name)
{
    if (!name.starts_with("_Z") || name.size() > mangled_max || name.find('\0') != std::string_view::npos)
        return {};
    return name.size() > demangler_max ? demangle_long(name) : demangle_short(std::string(name));
}

} // namespace

bool may_be_mangled(std::string_view name)
{
    return name.starts_with("_Z") || name.find(stub_prefix) != std::string_view::npos;
}

std::string demangle(std::string_view name)
{
    std::string text = demangle_itanium(name).value_or(std::string(name));
    // nvcc's stub is a local function whose name contains the kernel's mangled name.
    if (text.starts_with("__device_stub__Z"))
        if (auto kernel = demangle_itanium(
                std::string_view(text).substr(stub_prefix.size() - 1, text.find('(') - stub_prefix.size() + 1)))
            return *kernel;

    auto in_identifier = [&](size_t at) {
        return std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_';
    };
    for (size_t at = text.find(stub_prefix); at != std::string::npos; at = text.find(stub_prefix, at + 1)) {
        bool starts = at == 0 || !in_identifier(at - 1);
        if (starts && at + stub_prefix.size() < text.size() && in_identifier(at + stub_prefix.size()))
            text.erase(at, stub_prefix.size());
    }
    return text;
}

} // namespace gpusnoop
