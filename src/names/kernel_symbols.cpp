// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_symbols.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <string_view>

namespace gpusnoop {

KernelSymbols::KernelSymbols(std::istream& text)
{
    constexpr std::string_view code = "tTwW";
    for (std::string line; std::getline(text, line);) {
        uint64_t address = 0;
        const char* const end = line.data() + line.size();
        const auto [behind, error] = std::from_chars(line.data(), end, address, 16);
        const std::string_view rest(behind, static_cast<size_t>(end - behind)); // " t name"
        if (error != std::errc() || !address || rest.size() < 4 || rest[0] != ' ' || rest[2] != ' ' ||
            code.find(rest[1]) == std::string_view::npos)
            continue;
        symbols_.push_back({address, static_cast<uint32_t>(names_.size())});
        names_ += rest.substr(3, rest.find('\t') - 3);
        names_ += '\0';
    }
    std::ranges::sort(symbols_, {}, &Symbol::address);
}

KernelSymbols KernelSymbols::of_this_kernel()
{
    std::ifstream text("/proc/kallsyms");
    return KernelSymbols(text);
}

const KernelSymbols::Symbol* KernelSymbols::find(uint64_t address) const
{
    constexpr uint64_t longest = 1 << 20; // further away it is in something without a name
    const auto behind = std::ranges::upper_bound(symbols_, address, {}, &Symbol::address);
    if (behind == symbols_.begin() || address - std::prev(behind)->address > longest)
        return nullptr;
    return &*std::prev(behind);
}

std::vector<std::string> KernelSymbols::frames(std::span<const uint64_t> addresses) const
{
    constexpr std::string_view leaves = "__schedule";
    std::vector<std::string> frames;
    for (const uint64_t address : addresses) {
        const Symbol* symbol = find(address);
        const char* const name = symbol ? &names_[symbol->name] : "";
        frames.push_back(symbol ? fmt::format("{}+{:#x} (kernel)", name, address - symbol->address)
                                : fmt::format("{:#x} (kernel)", address));
        if (name == leaves)
            frames.clear();
    }
    return frames;
}

} // namespace gpusnoop
