// SPDX-License-Identifier: Apache-2.0
// Functions behind others that only look them up in a table: from ROCm 6.1 on, nearly all that libamdhip64 exports.
// What a file says is checked, never assumed.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"
#include "code/elf_image.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusnoop {

// Where a function's return value is found from its first argument: what has been loaded on the way. The same on all
// machines; which instructions do it is each one's own.

// What a register holds: what has been loaded on the way from the argument, and what has been added since.
struct PartialPath {
    static constexpr size_t max_steps = 64;
    static constexpr int max_call_depth = 3; // calls within calls
    static constexpr int64_t max_offset = 4096;
    static constexpr size_t max_loads = 4;

    Path loads;
    int64_t added = 0;
};

inline std::optional<PartialPath> plus(std::optional<PartialPath> way, int64_t number)
{
    if (way && (number < 0 || (way->added += number) > PartialPath::max_offset))
        way.reset();
    return way;
}

// The pointer at that place.
inline std::optional<PartialPath> loaded_from(std::optional<PartialPath> place)
{
    if (!place || place->loads.size() >= PartialPath::max_loads)
        return std::nullopt;
    place->loads.push_back(static_cast<uint32_t>(std::exchange(place->added, 0)));
    return place;
}

inline std::optional<Path> path_by(const std::optional<PartialPath>& returned)
{
    return returned && returned->added == 0 && !returned->loads.empty() ? std::optional(returned->loads) : std::nullopt;
}

// What a register or a word of the stack holds while arguments are handed on.
struct TrackedValue {
    enum Kind : uint8_t {
        unknown,
        entered,   // what that register held when the function was called
        for_check, // the return address, signed with the stack pointer
        table,
        slot,
    } kind = unknown;
    size_t reg = 0;      // of entered
    bool whole = false;  // ... all of it, not its lower half alone
    uint32_t offset = 0; // slot: where in the table

    bool operator==(const TrackedValue&) const = default;
};

// The words of its own frame that a function keeps while it hands arguments on.
class OwnFrame {
public:
    // How far the stack pointer is from where it was at the entry.
    int64_t stack() const { return stack_; }

    bool move_stack(int64_t by)
    {
        constexpr int64_t most = 4096;
        if (by < -most || by > most)
            return false;
        stack_ += by;
        std::erase_if(words_, [this](const auto& word) { return word.first < stack_; });
        return stack_ <= 0;
    }

    // False where it is its caller's, where arguments may be. at: from where the stack pointer was at the entry.
    bool store(int64_t at, int64_t bytes, const TrackedValue& what)
    {
        if (at < stack_ || at + bytes > 0)
            return false;
        std::erase_if(words_,
                      [&](const auto& word) { return word.first < at + bytes && at < word.first + word.second.first; });
        words_[at] = {bytes, what};
        return true;
    }

    TrackedValue load(int64_t at, int64_t bytes) const
    {
        const auto word = words_.find(at);
        if (word == words_.end() || word->second.first < bytes)
            return {};
        TrackedValue held = word->second.second;
        held.whole = held.whole && bytes == 8;
        return held;
    }

private:
    std::map<int64_t, std::pair<int64_t, TrackedValue>> words_; // bytes, and what they hold
    int64_t stack_ = 0;
};

// A function that hands its arguments on, instruction by instruction; what those do is each machine's own.
template<size_t registers>
class ForwarderState {
protected:
    ForwarderState()
    {
        for (size_t i = 0; i < registers; i++)
            held_[i] = {TrackedValue::entered, i, true, 0};
    }

    bool is_own(size_t number) const
    {
        return held_[number].kind == TrackedValue::entered && held_[number].reg == number;
    }

    // False for any call but one, of what returns the table. lost: registers that it may change.
    bool call(uint64_t target, std::span<const size_t> lost, size_t returned)
    {
        if (table_of_)
            return false;
        table_of_ = target;
        for (const size_t number : lost)
            held_[number] = {};
        held_[returned] = {TrackedValue::table, 0, true, 0};
        return true;
    }

    // Where it jumps to this. kept: registers that it must not change.
    std::optional<Dispatch> result(const TrackedValue& target, std::span<const size_t> arguments,
                                   std::span<const size_t> kept) const
    {
        if (target.kind != TrackedValue::slot || !target.whole || frame_.stack() != 0 ||
            !std::ranges::all_of(kept, [&](size_t number) { return is_own(number) && held_[number].whole; }))
            return std::nullopt;
        Dispatch found{.table_of = table_of_, .slot = target.offset};
        for (size_t i = 0; i < arguments.size(); i++) {
            if (!is_own(arguments[i]))
                continue;
            const auto bit = static_cast<uint8_t>(1U << i);
            found.low |= bit;
            if (held_[arguments[i]].whole)
                found.whole |= bit;
        }
        return found;
    }

    std::array<TrackedValue, registers> held_{};
    OwnFrame frame_;
    uint64_t table_of_ = 0;
};

// What a function stores that fills a table and returns it. Such a function begins with what it does every time but the
// first, and returns a pointer from memory; that is set where all else has been.
class FilledTable {
public:
    // A second value for a place makes both of them unknown.
    void store(uint64_t address, const Argument& what)
    {
        const auto [place, is_new] = stored_.emplace(address, what);
        if (!is_new && place->second != what)
            place->second = {};
    }

    enum class Return { none, not_yet_filled, filled };
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
            return Return::not_yet_filled;
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

class DispatchTables {
public:
    explicit DispatchTables(const Elf& elf) : elf_(elf), image_(elf) {}

    struct Target {
        uint64_t address = 0;       // of the function that this one hands its arguments to
        uint8_t whole = 0, low = 0; // as in Dispatch
    };
    // nullopt where it does anything else, or nobody knows what is in the table.
    std::optional<Target> target(const Symbol& function);

private:
    using Table = std::unordered_map<uint64_t, uint64_t>; // addresses of functions, by their places in it

    const Table& table_of(uint64_t function);

    const Elf& elf_;
    ElfImage image_;
    std::map<uint64_t, Table> tables_;
};

} // namespace gpusnoop
