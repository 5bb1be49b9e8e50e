// SPDX-License-Identifier: Apache-2.0
// What a function stores that fills a table and returns it. Such a function begins with what it does every time but the
// first, and returns a pointer from memory; that is set where all else has been.
#pragma once

#include "code/decoder.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gpusnoop {

class FilledTable {
public:
    // A second value for a place makes both of them unknown.
    void store(uint64_t address, const Argument& what)
    {
        const auto [place, is_new] = stored_.emplace(address, what);
        if (!is_new && place->second != what)
            place->second = {};
    }

    enum class Return { none, goes_on, filled };
    // It returns this: none, where that is no such pointer; filled, where the pointer has been set.
    Return returned(const Argument& what)
    {
        if (!pointer_) {
            if (what.kind != Argument::loaded)
                return Return::none;
            pointer_ = what.value;
        }
        const auto found = stored_.find(*pointer_);
        if (found == stored_.end())
            return Return::goes_on;
        table_ = found->second;
        return Return::filled;
    }

    std::vector<Filled> all() const
    {
        std::vector<Filled> all;
        if (table_.kind != Argument::constant)
            return all;
        for (const auto& [address, what] : stored_)
            if (address > table_.value && what.kind != Argument::unknown && address != *pointer_)
                all.push_back({address - table_.value, what});
        return all;
    }

private:
    std::map<uint64_t, Argument> stored_;
    std::optional<uint64_t> pointer_; // where the table's address is
    Argument table_;                  // that address
};

} // namespace gpusnoop
