// SPDX-License-Identifier: Apache-2.0
// Finds the targets of exported functions that forward their calls through a table of function pointers. Since ROCm
// 6.1, nearly all functions of libamdhip64 do so. A target is returned only if the file's machine code proves it.
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

// Symbolic value of a register: the first argument, followed through a chain of loads, plus an offset. Shared by all
// instruction sets.
struct PartialPath {
    static constexpr size_t max_steps = 64;
    static constexpr int max_call_depth = 3; // maximum depth of nested calls
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

// Returns the path to the pointer stored at `place`.
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

// Abstract value of a register or stack word in a function that forwards its arguments.
struct TrackedValue {
    enum Kind : uint8_t {
        unknown,
        entered,   // the value that register `reg` had at function entry
        for_check, // the return address, signed with the stack pointer as modifier
        table,     // address of the table
        slot,      // a pointer loaded from the table
    } kind = unknown;
    size_t reg = 0;      // used if kind is entered
    bool whole = false;  // all 64 bits of the value are kept, not only the lower 32
    uint32_t offset = 0; // used if kind is slot: byte offset in the table

    bool operator==(const TrackedValue&) const = default;
};

// Stack frame of a forwarding function. All offsets are relative to the stack pointer at function entry.
class OwnFrame {
public:
    // Returns the current offset of the stack pointer, which is 0 or negative.
    int64_t stack() const { return stack_; }

    // False if the function pops more than it has pushed, or moves the stack pointer implausibly far.
    bool move_stack(int64_t by)
    {
        constexpr int64_t max_step = 4096;
        if (by < -max_step || by > max_step)
            return false;
        stack_ += by;
        std::erase_if(words_, [this](const auto& word) { return word.first < stack_; });
        return stack_ <= 0;
    }

    // Tracks a store to the stack. Returns false if the store is outside the function's own frame, because it might
    // then change arguments in the caller's frame.
    bool store(int64_t at, int64_t bytes, const TrackedValue& value)
    {
        if (at < stack_ || at + bytes > 0)
            return false;
        std::erase_if(words_,
                      [&](const auto& word) { return word.first < at + bytes && at < word.first + word.second.first; });
        words_[at] = {bytes, value};
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
    std::map<int64_t, std::pair<int64_t, TrackedValue>> words_; // offset -> size in bytes, value
    int64_t stack_ = 0;
};

// State of a forwarding function while its instructions are interpreted. Subclasses decode the instructions.
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

    // Interprets a call of the function that returns the table. Returns false if the code has already called a
    // function, because only one call is supported. lost: registers that a call may change. returned: register that
    // holds the return value.
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

    // Returns the result for a function that now jumps to `target`. nullopt if this is not a tail call through the
    // table. kept: callee-saved registers, which must hold their entry values at the jump.
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

// Tracks the stores of a function that fills a table on its first call and returns a pointer to the table. The first
// call stores that pointer in a variable after it has filled the table. Later calls only load the pointer. In the
// machine code, the path of later calls comes before the code that fills the table.
class FilledTable {
public:
    // If different values are stored at the same address, the value there becomes unknown.
    void store(uint64_t address, const Argument& value)
    {
        const auto [place, is_new] = stored_.emplace(address, value);
        if (!is_new && place->second != value)
            place->second = {};
    }

    enum class Return { none, not_yet_filled, filled };
    // Call this at each return instruction, with the value that the function returns there. none: the value is not
    // loaded from memory, so the function does not fill a table. filled: the pointer to the table has been stored, so
    // the table is complete.
    Return returned(const Argument& value)
    {
        if (!pointer_) {
            if (value.kind != Argument::loaded)
                return Return::none;
            pointer_ = value.value;
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
        for (const auto& [address, value] : stored_)
            if (address > table_.value && value.kind != Argument::unknown && address != *pointer_)
                all.push_back({address - table_.value, value});
        return all;
    }

private:
    std::map<uint64_t, Argument> stored_;
    std::optional<uint64_t> pointer_; // address of the variable that holds the pointer to the table
    Argument table_;                  // address of the table
};

class DispatchTables {
public:
    explicit DispatchTables(const Elf& elf) : elf_(elf), image_(elf) {}

    struct Target {
        uint64_t address = 0;       // address of the function to which the call is forwarded
        uint8_t whole = 0, low = 0; // same meaning as in Dispatch
    };
    // Returns nullopt if the function does anything but forward, or if the table entry is unknown.
    std::optional<Target> target(const Symbol& function);

private:
    using Table = std::unordered_map<uint64_t, uint64_t>; // byte offset in the table -> address of a function

    const Table& table_of(uint64_t function);

    const Elf& elf_;
    ElfImage image_;
    std::map<uint64_t, Table> tables_;
};

} // namespace gpusnoop
