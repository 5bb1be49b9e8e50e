// SPDX-License-Identifier: Apache-2.0
// Decoder parts for x86-64: functions that follow a chain of pointers from their argument and return the last pointer,
// and functions that forward through a table (libamdhip64 exports such functions since ROCm 6.1).
#include "code/dispatch_tables.hpp"
#include "code/registers_x86_64.hpp"

#include <algorithm>
#include <utility>

namespace gpusnoop::x86_64 {

namespace {

constexpr size_t rax = 0, rsp = 4, rdi = 7;

// Interprets a function and its callees, to find the path to its return value.
class PathSearch {
public:
    PathSearch(const CodeAt& code_at, std::optional<PartialPath> argument, int depth) : code_at_(code_at), depth_(depth)
    {
        held_[rdi] = std::move(argument);
    }

    // Returns the path to the return value. nullopt if there is none, or if the code does anything but follow a path.
    std::optional<PartialPath> run(const Code& code)
    {
        Instruction instruction;
        size_t at = 0;
        for (size_t step = 0; step < PartialPath::max_steps && decode(code.bytes.subspan(at), instruction); step++) {
            at += instruction.info.length;
            const uint64_t next = code.address + at;
            if (instruction.is(ZYDIS_MNEMONIC_RET))
                return held_[rax];
            if (instruction.is(ZYDIS_MNEMONIC_JMP))
                return called(instruction, next);
            if (instruction.is(ZYDIS_MNEMONIC_CALL)) {
                std::optional<PartialPath> result = called(instruction, next);
                for (const size_t number : lost_in_calls)
                    held_[number].reset();
                held_[rax] = std::move(result);
            } else {
                follow(instruction);
            }
        }
        return std::nullopt;
    }

private:
    std::optional<PartialPath> called(const Instruction& instruction, uint64_t next)
    {
        const ZydisDecodedOperand& target = instruction.operands[0];
        if (target.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !held_[rdi] || depth_ >= PartialPath::max_call_depth)
            return std::nullopt;
        const uint64_t address = next + target.imm.value.u;
        const std::vector<uint8_t> bytes = code_at_(address);
        return PathSearch(code_at_, held_[rdi], depth_ + 1).run({bytes, address});
    }

    // Assumes that conditional branches are null checks and not taken.
    void follow(const Instruction& instruction)
    {
        const ZydisDecodedOperand &to = instruction.operands[0], &from = instruction.operands[1];
        const auto target = to.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(to.reg.value) : std::nullopt;
        if (target && to.size == 64 && *target != rsp) {
            std::optional<PartialPath> value = assigned(instruction, from, held_[*target]);
            if (value || (to.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
                held_[*target] = std::move(value);
            return;
        }
        for (size_t i = 0; i < instruction.info.operand_count; i++) {
            const ZydisDecodedOperand& operand = instruction.operands[i];
            if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
                if (const auto number = number_of(operand.reg.value))
                    held_[*number].reset();
        }
    }

    std::optional<PartialPath> assigned(const Instruction& instruction, const ZydisDecodedOperand& from,
                                        const std::optional<PartialPath>& before) const
    {
        if (instruction.is(ZYDIS_MNEMONIC_ADD) && from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return plus(before, from.imm.value.s);
        const auto source = from.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(from.reg.value) : std::nullopt;
        if (instruction.is(ZYDIS_MNEMONIC_MOV) && source)
            return held_[*source];
        const auto base = from.type == ZYDIS_OPERAND_TYPE_MEMORY && from.mem.index == ZYDIS_REGISTER_NONE
                              ? number_of(from.mem.base)
                              : std::nullopt;
        std::optional<PartialPath> place = base ? plus(held_[*base], from.mem.disp.value) : std::nullopt;
        if (instruction.is(ZYDIS_MNEMONIC_LEA))
            return place;
        return instruction.is(ZYDIS_MNEMONIC_MOV) && from.size == 64 ? loaded_from(place) : std::nullopt;
    }

    const CodeAt& code_at_;
    int depth_;
    std::array<std::optional<PartialPath>, registers> held_;
};

} // namespace

std::optional<Path> X86_64::path(const Code& code, const CodeAt& code_at) const
{
    return path_by(PathSearch(code_at, PartialPath{}, 0).run(code));
}

namespace {

constexpr std::array<size_t, 6> forwarded_registers = {7, 6, 2, 1, 8, 9}; // rdi, rsi, rdx, rcx, r8, r9
constexpr std::array<size_t, 6> callee_saved = {3, 5, 12, 13, 14, 15};
constexpr size_t max_steps = 64;

class Forwarder : public ForwarderState<registers> {
public:
    enum class Step { next, done, unsupported };
    Step follow(const Instruction& instruction, uint64_t next);
    // Call this after Step::done.
    std::optional<Dispatch> result() const
    {
        return ForwarderState::result(target_, forwarded_registers, callee_saved);
    }

private:
    bool move(const Instruction& instruction);
    bool move_stack(const Instruction& instruction);
    bool push(const Instruction& instruction);
    bool pop(const Instruction& instruction);
    TrackedValue in_table(const ZydisDecodedOperand& operand) const;

    TrackedValue target_;
};

bool is_on_stack(const ZydisDecodedOperand& operand)
{
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_RSP &&
           operand.mem.index == ZYDIS_REGISTER_NONE;
}

TrackedValue Forwarder::in_table(const ZydisDecodedOperand& operand) const
{
    const auto base = operand.type == ZYDIS_OPERAND_TYPE_MEMORY ? number_of(operand.mem.base) : std::nullopt;
    if (!base || held_[*base].kind != TrackedValue::table || operand.mem.index != ZYDIS_REGISTER_NONE ||
        operand.size != 64 || operand.mem.disp.value < 0 || operand.mem.disp.value > INT32_MAX)
        return {};
    return {TrackedValue::slot, 0, true, static_cast<uint32_t>(operand.mem.disp.value)};
}

bool Forwarder::move(const Instruction& instruction)
{
    const ZydisDecodedOperand &to = instruction.operands[0], &from = instruction.operands[1];
    const int64_t bytes = to.size / 8;
    if (bytes != 4 && bytes != 8)
        return false;
    TrackedValue value;
    if (from.type == ZYDIS_OPERAND_TYPE_REGISTER) {
        const auto number = number_of(from.reg.value);
        if (!number || *number == rsp)
            return false;
        value = held_[*number];
        value.whole = value.whole && bytes == 8;
    } else if (is_on_stack(from)) {
        value = frame_.load(frame_.stack() + from.mem.disp.value, bytes);
    } else if (value = in_table(from); value.kind == TrackedValue::unknown) {
        return false;
    }
    if (is_on_stack(to))
        return frame_.store(frame_.stack() + to.mem.disp.value, bytes, value);
    const auto number = to.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(to.reg.value) : std::nullopt;
    if (!number || *number == rsp)
        return false;
    held_[*number] = value;
    return true;
}

bool Forwarder::move_stack(const Instruction& instruction)
{
    const ZydisDecodedOperand &to = instruction.operands[0], &by = instruction.operands[1];
    if (to.type != ZYDIS_OPERAND_TYPE_REGISTER || to.reg.value != ZYDIS_REGISTER_RSP ||
        by.type != ZYDIS_OPERAND_TYPE_IMMEDIATE || by.imm.value.s == INT64_MIN)
        return false;
    return frame_.move_stack(instruction.is(ZYDIS_MNEMONIC_SUB) ? -by.imm.value.s : by.imm.value.s);
}

bool Forwarder::push(const Instruction& instruction)
{
    const ZydisDecodedOperand& operand = instruction.operands[0];
    const auto number = operand.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(operand.reg.value) : std::nullopt;
    if (!number || *number == rsp || operand.size != 64)
        return false;
    return frame_.move_stack(-8) && frame_.store(frame_.stack(), 8, held_[*number]);
}

bool Forwarder::pop(const Instruction& instruction)
{
    const ZydisDecodedOperand& operand = instruction.operands[0];
    const auto number = operand.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(operand.reg.value) : std::nullopt;
    if (!number || *number == rsp || operand.size != 64 || frame_.stack() > -8)
        return false;
    held_[*number] = frame_.load(frame_.stack(), 8);
    return frame_.move_stack(8);
}

Forwarder::Step Forwarder::follow(const Instruction& instruction, uint64_t next)
{
    const auto next_if = [](bool supported) { return supported ? Step::next : Step::unsupported; };
    const ZydisDecodedOperand& first = instruction.operands[0];
    switch (instruction.info.mnemonic) {
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_NOP:
        return Step::next;
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_ADD:
        return next_if(move_stack(instruction));
    case ZYDIS_MNEMONIC_PUSH:
        return next_if(push(instruction));
    case ZYDIS_MNEMONIC_POP:
        return next_if(pop(instruction));
    case ZYDIS_MNEMONIC_MOV:
        return next_if(move(instruction));
    case ZYDIS_MNEMONIC_CALL:
        return next_if(first.type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
                       call(next + first.imm.value.u, lost_in_calls, rax));
    case ZYDIS_MNEMONIC_JMP:
        break;
    default:
        return Step::unsupported;
    }
    const auto number = first.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(first.reg.value) : std::nullopt;
    target_ = number ? held_[*number] : in_table(first);
    return Step::done;
}

// The two 64-bit halves of a vector register.
using Pair = std::array<Argument, 2>;

// Interprets code and records its stores to known addresses.
class Stores {
public:
    void follow(const Instruction& instruction, uint64_t next);
    FilledTable::Return returned() { return table_.returned(registers_[rax]); }
    const FilledTable& table() const { return table_; }

private:
    Pair* vector(const ZydisDecodedOperand& operand);
    Argument word(const ZydisDecodedOperand& operand, uint64_t next) const;
    bool follow_vector(const Instruction& instruction, uint64_t next);

    Registers registers_;
    std::array<Pair, registers> vectors_{};
    FilledTable table_;
};

Pair* Stores::vector(const ZydisDecodedOperand& operand)
{
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || ZydisRegisterGetClass(operand.reg.value) != ZYDIS_REGCLASS_XMM)
        return nullptr;
    const auto id = static_cast<size_t>(ZydisRegisterGetId(operand.reg.value));
    return id < vectors_.size() ? &vectors_[id] : nullptr;
}

// Returns the 64-bit value of an operand.
Argument Stores::word(const ZydisDecodedOperand& operand, uint64_t next) const
{
    if (is_memory_at_rip(operand))
        return {Argument::loaded, next + static_cast<uint64_t>(operand.mem.disp.value)};
    const auto number = operand.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(operand.reg.value) : std::nullopt;
    if (number && operand.size == 64)
        return registers_[*number];
    return operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? Argument{Argument::constant, operand.imm.value.u}
                                                        : Argument{};
}

// Interprets known vector moves. Returns false for other instructions.
bool Stores::follow_vector(const Instruction& instruction, uint64_t next)
{
    const ZydisDecodedOperand &to = instruction.operands[0], &from = instruction.operands[1];
    Pair *const target = vector(to), *const source = vector(from);
    const uint64_t address = is_memory_at_rip(to) ? next + static_cast<uint64_t>(to.mem.disp.value) : 0;
    switch (instruction.info.mnemonic) {
    case ZYDIS_MNEMONIC_MOVQ:
        if (target)
            *target = {source ? (*source)[0] : word(from, next), Argument{Argument::constant, 0}};
        else if (address && source)
            table_.store(address, (*source)[0]);
        return target || address;
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVHPD:
        if (target)
            (*target)[1] = word(from, next);
        else if (address && source)
            table_.store(address, (*source)[1]);
        return target || address;
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
        if (target)
            (*target)[1] = source ? (*source)[0] : Argument{};
        return target;
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVDQA:
        if (target)
            *target = source ? *source : Pair{};
        else if (address && source) {
            table_.store(address, (*source)[0]);
            table_.store(address + 8, (*source)[1]);
        }
        return target || address;
    default:
        return false;
    }
}

void Stores::follow(const Instruction& instruction, uint64_t next)
{
    const ZydisDecodedOperand& first = instruction.operands[0];
    if (follow_vector(instruction, next))
        return;
    if (instruction.info.meta.category == ZYDIS_CATEGORY_CALL)
        vectors_ = {};
    else if (Pair* const target = instruction.info.operand_count_visible ? vector(first) : nullptr)
        *target = {};
    if (instruction.is(ZYDIS_MNEMONIC_MOV) && is_memory_at_rip(first) && first.size == 64)
        table_.store(next + static_cast<uint64_t>(first.mem.disp.value), word(instruction.operands[1], next));
    registers_.follow(instruction, next);
}

} // namespace

std::optional<Dispatch> X86_64::dispatch(const Code& code) const
{
    Forwarder function;
    Instruction instruction;
    size_t at = 0;
    for (size_t step = 0; step < max_steps && at < code.bytes.size(); step++) {
        if (!decode(code.bytes.subspan(at), instruction))
            return std::nullopt;
        at += instruction.info.length;
        switch (function.follow(instruction, code.address + at)) {
        case Forwarder::Step::done:
            return function.result();
        case Forwarder::Step::unsupported:
            return std::nullopt;
        case Forwarder::Step::next:
            break;
        }
    }
    return std::nullopt;
}

std::vector<Filled> X86_64::filled(const Code& code) const
{
    Stores stores;
    Instruction instruction;
    for (size_t at = 0; at < code.bytes.size(); at += instruction.info.length) {
        if (!decode(code.bytes.subspan(at), instruction))
            return {};
        if (instruction.info.meta.category == ZYDIS_CATEGORY_RET) {
            const FilledTable::Return result = stores.returned();
            if (result == FilledTable::Return::none)
                return {};
            if (result == FilledTable::Return::filled)
                break;
        }
        stores.follow(instruction, code.address + at + instruction.info.length);
    }
    return stores.table().all();
}

} // namespace gpusnoop::x86_64
