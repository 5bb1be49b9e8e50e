// SPDX-License-Identifier: Apache-2.0
#include "names/itanium.hpp"
#include "names/kernel_text.hpp"

#include <cctype>
#include <optional>

namespace gpusnoop {

namespace {

std::optional<std::string> demangle_itanium(std::string_view name)
{
    if (!name.starts_with("_Z") || name.size() > itanium::longest_name || name.find('\0') != std::string_view::npos)
        return {};
    try {
        std::string text = itanium::Demangler(name).demangle();
        if (text.size() <= itanium::longest_result)
            return text;
    } catch (const itanium::GiveUp&) {
        // shown as it is
    }
    return {};
}

} // namespace

std::string demangle(std::string_view name)
{
    std::string text = demangle_itanium(name).value_or(std::string(name));
    constexpr std::string_view stub = "__device_stub__";
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
