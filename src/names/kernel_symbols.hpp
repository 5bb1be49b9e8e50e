// SPDX-License-Identifier: Apache-2.0
// Addresses of the kernel's stack -> "do_nanosleep+0x5c (kernel)", by /proc/kallsyms.
#pragma once

#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <vector>

namespace gpusnoop {

class KernelSymbols {
public:
    KernelSymbols() = default;
    // Of that text: "ffffffff81234560 t name[\t[module]]" in each line; what is no code is left out.
    explicit KernelSymbols(std::istream& text);
    static KernelSymbols of_this_kernel();

    // Innermost first, from where the thread leaves its CPU on: who has taken the stack is no part of it. What has no
    // name, as where kptr_restrict hides all, is "0x...".
    std::vector<std::string> frames(std::span<const uint64_t> addresses) const;

private:
    struct Symbol {
        uint64_t address;
        uint32_t name; // in names_, up to a zero
    };
    const Symbol* find(uint64_t address) const;

    std::vector<Symbol> symbols_; // by address
    std::string names_;
};

} // namespace gpusnoop
