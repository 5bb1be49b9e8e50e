// SPDX-License-Identifier: Apache-2.0
// Decoder parts for arm64: functions that forward through a table, and functions that return a field or a constant
// through a pointer.
#include "code/dispatch_tables.hpp"
#include "code/paths_arm64.hpp"
#include "code/words_arm64.hpp"

#include <array>
#include <map>
#include <utility>

namespace gpusnoop::arm64 {

namespace {

constexpr std::array<size_t, 8> arguments = {0, 1, 2, 3, 4, 5, 6, 7};
constexpr std::array<size_t, 12> callee_saved = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, link};
// Registers that a call may change: x0 to x18 and the link register.
constexpr std::array<size_t, 20> lost = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, link};
constexpr size_t max_steps = 64;

class Forwarder : public ForwarderState<32> {
public:
    // Interprets an instruction. False if the instruction does not occur in forwarding functions.
    bool follow(uint32_t word, uint64_t at);
    // The result if the function now jumps to the address in this register.
    std::optional<Dispatch> result(size_t target) const
    {
        return ForwarderState::result(held_[target], arguments, callee_saved);
    }

private:
    bool access(const Access& access);

    int64_t signed_at_ = 0; // stack offset at which the return address was signed
};

bool Forwarder::access(const Access& access)
{
    if (access.base != x31) {
        const TrackedValue& base = held_[access.base];
        if (!access.loads || access.count != 1 || access.bytes != 8 || access.before || access.after ||
            base.kind != TrackedValue::table || access.offset < 0 || access.numbers[0] == x31)
            return false;
        held_[access.numbers[0]] = {TrackedValue::slot, 0, true, static_cast<uint32_t>(access.offset)};
        return true;
    }
    if (!frame_.move_stack(access.before))
        return false;
    for (size_t i = 0; i < access.count; i++) {
        const int64_t at = frame_.stack() + access.offset + static_cast<int64_t>(i * access.bytes),
                      bytes = access.bytes;
        TrackedValue& reg = held_[access.numbers[i]];
        if (access.numbers[i] == x31)
            return false;
        if (access.loads) {
            reg = frame_.load(at, bytes);
        } else if (!frame_.store(at, bytes, reg)) {
            return false;
        }
    }
    return frame_.move_stack(access.after);
}

bool Forwarder::follow(uint32_t word, uint64_t at)
{
    if (bti.matches(word) || nop.matches(word))
        return true;
    if (sign_return.matches(word) && is_own(link)) {
        held_[link].kind = TrackedValue::for_check;
        signed_at_ = frame_.stack();
        return true;
    }
    if (check_return.matches(word) && held_[link].kind == TrackedValue::for_check && frame_.stack() == signed_at_) {
        held_[link].kind = TrackedValue::entered;
        return true;
    }
    if (bl.matches(word))
        return call(call_target(word, at), lost, 0);
    if (const auto memory_access = access_of(word))
        return access(*memory_access);
    if ((add_immediate.matches(word) || sub_immediate.matches(word)) && rn(word) == x31) {
        const auto number = static_cast<int64_t>(added(word)) * (add_immediate.matches(word) ? 1 : -1);
        if (rd(word) == x31)
            return frame_.move_stack(number);
        held_[rd(word)] = {}; // an address in the stack frame, such as the frame pointer; not tracked
        return true;
    }
    const bool low = move_low.matches(word);
    if ((!low && !move.matches(word)) || rm(word) == x31 || rd(word) == x31)
        return false;
    held_[rd(word)] = held_[rm(word)];
    held_[rd(word)].whole = held_[rd(word)].whole && !low;
    return true;
}

// Known values of registers and of stack words, by offset from the stack pointer.
struct State {
    Registers registers;
    std::map<int64_t, Argument> spilled;
};

// Interprets code and records its stores to known addresses. Only forward branches are supported.
class Stores {
public:
    // False for a backward branch or an unsupported store.
    bool follow(uint32_t word, uint64_t at);
    // Call this before each instruction. Merges the current state with the states at earlier branches to the
    // instruction.
    void arrive(uint64_t at);
    bool reached() const { return reached_; }
    FilledTable::Return returned() { return table_.returned(state_.registers[0]); }
    const FilledTable& table() const { return table_; }

private:
    void branch_to(uint64_t target);
    bool access(const Access& access);

    State state_;
    bool reached_ = true;
    std::map<uint64_t, State> branch_states_; // branch target -> merged state of the branches to it
    FilledTable table_;
};

void Stores::branch_to(uint64_t target)
{
    const auto [place, is_new] = branch_states_.emplace(target, state_);
    if (is_new)
        return;
    place->second.registers.merge(state_.registers);
    std::erase_if(place->second.spilled, [this](const auto& word) {
        const auto same = state_.spilled.find(word.first);
        return same == state_.spilled.end() || same->second != word.second;
    });
}

void Stores::arrive(uint64_t at)
{
    if (!branch_states_.contains(at))
        return;
    if (reached_)
        branch_to(at);
    state_ = std::move(branch_states_.extract(at).mapped());
    reached_ = true;
}

bool Stores::access(const Access& access)
{
    const Argument base = state_.registers[access.base];
    if (!access.loads && base.kind == Argument::constant && (access.before || access.after || access.bytes != 8))
        return false;
    if (access.base == x31 && (access.before || access.after))
        state_.spilled.clear();
    for (size_t i = 0; i < access.count; i++) {
        const int64_t offset = access.offset + static_cast<int64_t>(i * access.bytes);
        const size_t number = access.numbers[i];
        const Argument held = number == x31 ? Argument{Argument::constant, 0} : state_.registers[number];
        if (access.base == x31 && !access.loads)
            state_.spilled[offset] = access.bytes == 8 ? held : Argument{};
        else if (!access.loads && base.kind == Argument::constant)
            table_.store(base.value + static_cast<uint64_t>(offset), held);
    }
    return true;
}

bool Stores::follow(uint32_t word, uint64_t at)
{
    if (is_conditional(word) || b.matches(word)) {
        const uint64_t target = b.matches(word) ? call_target(word, at) : conditional_target(word, at);
        if (target <= at)
            return false;
        branch_to(target);
    }
    const auto memory_access = access_of(word);
    if (memory_access && !access(*memory_access))
        return false;
    if ((add_immediate.matches(word) || sub_immediate.matches(word)) && rd(word) == x31)
        state_.spilled.clear();
    state_.registers.follow(word, at);
    if (memory_access && memory_access->loads && memory_access->base == x31 && memory_access->count == 1 &&
        memory_access->bytes == 8 && !memory_access->before && !memory_access->after)
        if (const auto word_there = state_.spilled.find(memory_access->offset); word_there != state_.spilled.end())
            state_.registers.set(memory_access->numbers[0], word_there->second);
    reached_ = !goes_elsewhere(word);
    return true;
}

} // namespace

std::optional<Dispatch> Arm64::dispatch(const Code& code) const
{
    Forwarder function;
    const Words words(code);
    for (size_t i = 0; i < words.size() && i < max_steps; i++) {
        if (br.matches(words[i]))
            return function.result(rn(words[i]));
        if (!function.follow(words[i], words.address(i)))
            return std::nullopt;
    }
    return std::nullopt;
}

std::vector<Filled> Arm64::filled(const Code& code) const
{
    Stores stores;
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        stores.arrive(words.address(i));
        if (!stores.reached())
            continue;
        if (ret.matches(words[i])) {
            const FilledTable::Return result = stores.returned();
            if (result == FilledTable::Return::none)
                return {};
            if (result == FilledTable::Return::filled)
                break;
        }
        if (!stores.follow(words[i], words.address(i)))
            return {};
    }
    return stores.table().all();
}

namespace {

// True for a 32-bit access through a pointer that the caller has passed. False for the stack and for variables with
// known addresses.
bool is_of_caller(const std::optional<Access>& access, const Registers& state)
{
    constexpr size_t frame = 29;
    return access && access->bytes == 4 && access->count == 1 && access->before == 0 && access->after == 0 &&
           access->base != x31 && access->base != frame && state[access->base].kind == Argument::unknown;
}

// Returns the general register that the instruction writes, or x31 if none.
size_t written_by(uint32_t word)
{
    const bool stores =
        memory.matches(word) && (store_pair.matches(word) || store.matches(word) || store_near.matches(word));
    return stores || is_conditional(word) || goes_elsewhere(word) || bl.matches(word) || blr.matches(word) ? x31
                                                                                                           : rd(word);
}

// Tracks registers that hold a structure's address plus an offset. Compilers add the offset separately if a field is
// too far from the start of the structure for a single load.
class FarOffsets {
public:
    // words: the whole function, because any of its instructions may set a register.
    explicit FarOffsets(const Words& words)
    {
        for (size_t i = 0; i < words.size(); i++)
            if (is_far(words[i]))
                may_be_far_[rd(words[i])] = true;
    }

    void follow(uint32_t word)
    {
        if (goes_elsewhere(word)) {
            offsets_ = {};
            return;
        }
        const size_t written = written_by(word);
        if (written == x31)
            return;
        if (add_immediate.matches(word) && rn(word) != x31)
            offsets_[written] = offsets_[rn(word)].value_or(0) + added(word);
        else if (move.matches(word))
            offsets_[written] = offsets_[rm(word)];
        else
            offsets_[written].reset();
    }

    // Returns the offset that was added to the structure's address in this register. 0: no instruction of the function
    // adds such an offset to this register. nullopt: the offset is unknown.
    std::optional<uint64_t> offset(size_t number) const
    {
        return offsets_[number] || !may_be_far_[number] ? offsets_[number].value_or(0) : std::optional<uint64_t>();
    }

private:
    static bool is_far(uint32_t word) { return add_immediate.matches(word) && word & 1 << 22; }

    std::array<bool, 32> may_be_far_{};
    std::array<std::optional<uint64_t>, 32> offsets_{};
};

} // namespace

std::optional<uint32_t> Arm64::returned_field(const Code& code) const
{
    constexpr size_t max_distance = 3; // maximum number of instructions from the load to the store
    const Words words(code);
    FarOffsets far_offsets(words);
    Registers state;
    std::optional<uint32_t> found, field;
    size_t loaded = x31, since = 0;
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        const auto access = access_of(word);
        const bool of_caller = is_of_caller(access, state);
        if (++since > max_distance)
            loaded = x31;
        if (of_caller && !access->loads && access->offset == 0 && loaded != x31 && access->numbers[0] == loaded) {
            if (!field || (found && *found != *field))
                return std::nullopt;
            found = field;
        }
        if (written_by(word) == loaded)
            loaded = x31;
        if (of_caller && access->loads) {
            const auto base = far_offsets.offset(access->base);
            const uint64_t place = base.value_or(0) + static_cast<uint64_t>(access->offset);
            field = base && place <= INT32_MAX ? std::optional(static_cast<uint32_t>(place)) : std::nullopt;
            loaded = place ? access->numbers[0] : x31;
            since = 0;
        }
        far_offsets.follow(word);
        state.follow(word, words.address(i));
    }
    return found;
}

std::optional<uint32_t> Arm64::returned_constant(const Code& code) const
{
    const Words words(code);
    Registers state;
    std::optional<uint32_t> found;
    for (size_t i = 0; i < words.size(); i++) {
        const auto access = access_of(words[i]);
        if (is_of_caller(access, state) && !access->loads && access->offset == 0) {
            const size_t from = access->numbers[0];
            const Argument stored = from == x31 ? Argument{Argument::constant, 0} : state[from];
            if (stored.kind == Argument::constant) {
                if (found && *found != stored.value)
                    return std::nullopt;
                found = static_cast<uint32_t>(stored.value);
            }
        }
        state.follow(words[i], words.address(i));
    }
    return found;
}

} // namespace gpusnoop::arm64
