// SPDX-License-Identifier: Apache-2.0
#include "code/python_layout.hpp"

#include "code/paths_arm64.hpp"
#include "code/words_arm64.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

namespace gpusnoop {

namespace {

// Offsets that are equal in most versions.
constexpr python_layout usual = {
    .start_ns = 0,
    .slot = 0,
    .thread_id = 152,
    .frame = 72,
    .frame_in_cframe = PYTHON_NONE,
    .code = 0,
    .previous = 8,
    .instruction = 56,
    .instruction_bytes = 8,
    .owner = 70,
    .entry = PYTHON_NONE,
    .on_heap = false,
    .code_mask = ~0ULL,
    .check = 88, // co_nfreevars and then co_version, which is unique to each code object
    .file = 112,
    .name = 128,
    .first_line = 68,
    .table = 136,
    .first_instruction = 200,
    .text_length = 16,
    .text_state = 32,
    .text_ascii = 40,
    .text_other = 56,
    .bytes_size = 16,
    .bytes_data = 32,
    .minor = 0,
    .zero = 0,
    .self = 0,
};

// 3.8 to 3.10: frames are objects with an instruction index, names are not qualified, and code objects have no version.
// `check` is therefore the offset of the pointer to the line table, which is unique to each code object.
constexpr python_layout until_3_10(uint8_t instruction)
{
    python_layout layout = usual;
    layout.thread_id = 176;
    layout.frame = 24;
    layout.code = 32;
    layout.previous = 24;
    layout.instruction = instruction;
    layout.instruction_bytes = 4;
    layout.owner = PYTHON_NONE;
    layout.on_heap = true;
    layout.check = 120;
    layout.file = 104;
    layout.name = 112;
    layout.first_line = 40;
    layout.table = 120;
    layout.first_instruction = 0;
    layout.text_ascii = 48;
    layout.text_other = 72;
    return layout;
}

constexpr python_layout of_3_11()
{
    python_layout layout = usual;
    layout.frame = 56;
    layout.frame_in_cframe = 8;
    layout.code = 32;
    layout.previous = 48;
    layout.owner = PYTHON_NONE;
    layout.entry = 68;
    layout.check = 136;
    layout.first_line = 72;
    layout.first_instruction = 184;
    layout.text_ascii = 48;
    layout.text_other = 72;
    return layout;
}

constexpr python_layout of_3_12()
{
    python_layout layout = usual;
    layout.thread_id = 136;
    layout.frame = 56;
    layout.frame_in_cframe = 0;
    layout.first_instruction = 192;
    return layout;
}

constexpr python_layout of_3_14()
{
    python_layout layout = usual;
    layout.owner = 74;
    layout.code_mask = ~7ULL; // the low bits are a reference-count tag
    layout.first_instruction = 208;
    return layout;
}

constexpr python_layout of_3_15()
{
    python_layout layout = of_3_14();
    layout.thread_id = 176;
    return layout;
}

constexpr PythonVersion versions[] = {
    {8, 32, 0, 8, 8, false, until_3_10(104)},   {9, 32, 0, 8, 8, false, until_3_10(104)},
    {10, 32, 0, 8, 8, false, until_3_10(96)},   {11, 40, 0, 16, 8, false, of_3_11()},
    {12, 40, 0, 72, 8, false, of_3_12()},       {13, 632, 7264, 7344, 8, false, usual},
    {14, 808, 7272, 7344, 8, false, of_3_14()}, {15, 936, 7264, 7336, 8, true, of_3_15()}, // CPython gh-132510
};

// Positions, in _Py_DebugOffsets, of the offsets that we use.
struct DebugOffsetPositions {
    unsigned minor;
    uint16_t interpreters, next_interpreter, threads, next_thread, frame, thread_id, previous, code, instruction, owner;
    uint16_t file, name, table, first_line, first_instruction, text_state, text_length, text_ascii, bytes_size,
        bytes_data;
};
constexpr DebugOffsetPositions debug_offset_positions[] = {
    {13, 40, 64, 72, 168, 184, 192, 232, 240, 248, 264, 280, 296, 304, 312, 344, 544, 552, 560, 520, 528},
    {14, 40, 64, 72, 192, 208, 216, 256, 264, 272, 288, 320, 336, 344, 352, 384, 624, 632, 640, 600, 608},
    {15, 40, 64, 72, 192, 208, 240, 320, 328, 336, 352, 384, 400, 408, 416, 448, 720, 728, 736, 696, 704},
};
constexpr std::string_view cookie = "xdebugpy";
constexpr size_t version_at = 8, free_threaded_at = 16;

template<class T>
bool read_offset(std::span<const uint8_t> from, size_t at, T& to)
{
    uint64_t word = 0;
    if (at + sizeof(word) > from.size())
        return false;
    memcpy(&word, from.data() + at, sizeof(word));
    to = static_cast<T>(word);
    return to == word && (sizeof(T) > 1 || word != PYTHON_NONE);
}

} // namespace

std::optional<PythonVersion> python_version(unsigned minor)
{
    const auto* const found = std::ranges::find(versions, minor, &PythonVersion::minor);
    if (found == std::end(versions))
        return std::nullopt;
    PythonVersion version = *found;
    version.layout.minor = static_cast<uint8_t>(minor);
    return version;
}

std::optional<PythonOffsets> debug_offsets(std::span<const uint8_t> runtime)
{
    uint32_t hex = 0;
    if (runtime.size() < cookie.size() || !std::equal(cookie.begin(), cookie.end(), runtime.begin()) ||
        !read_offset(runtime, version_at, hex) || hex >> 24 != 3)
        return std::nullopt;
    const unsigned minor = hex >> 16 & 0xff;
    PythonOffsets offsets;
    uint64_t free_threaded = 0;
    read_offset(runtime, free_threaded_at, free_threaded);
    offsets.free_threaded = free_threaded != 0;
    offsets.version.minor = minor;
    const auto* const at = std::ranges::find(debug_offset_positions, minor, &DebugOffsetPositions::minor);
    const auto known = python_version(minor);
    if (at == std::end(debug_offset_positions) || !known || offsets.free_threaded)
        return offsets;
    PythonVersion& v = offsets.version = *known;
    python_layout& l = v.layout;
    const bool all =
        read_offset(runtime, at->interpreters, v.interpreters) &&
        read_offset(runtime, at->next_interpreter, v.next_interpreter) &&
        read_offset(runtime, at->threads, v.threads) && read_offset(runtime, at->next_thread, v.next_thread) &&
        read_offset(runtime, at->frame, l.frame) && read_offset(runtime, at->thread_id, l.thread_id) &&
        read_offset(runtime, at->previous, l.previous) && read_offset(runtime, at->code, l.code) &&
        read_offset(runtime, at->instruction, l.instruction) && read_offset(runtime, at->owner, l.owner) &&
        read_offset(runtime, at->file, l.file) && read_offset(runtime, at->name, l.name) &&
        read_offset(runtime, at->table, l.table) && read_offset(runtime, at->first_line, l.first_line) &&
        read_offset(runtime, at->first_instruction, l.first_instruction) &&
        read_offset(runtime, at->text_state, l.text_state) && read_offset(runtime, at->text_length, l.text_length) &&
        read_offset(runtime, at->text_ascii, l.text_ascii) && read_offset(runtime, at->bytes_size, l.bytes_size) &&
        read_offset(runtime, at->bytes_data, l.bytes_data);
    if (!all)
        return std::nullopt;
    // In a non-ASCII string, the length of the UTF-8 text and a pointer to it precede the characters.
    l.text_other = static_cast<uint16_t>(l.text_ascii + 2 * sizeof(uint64_t));
    return offsets;
}

namespace {

// Code: mov %fs:OFFSET,%rax
std::optional<int32_t> variable_x86_64(const Code& code)
{
    constexpr std::array<uint8_t, 5> load = {0x64, 0x48, 0x8b, 0x04, 0x25};
    const auto found = std::ranges::search(code.bytes, load);
    int32_t offset = 0;
    if (code.bytes.end() - found.end() < static_cast<ptrdiff_t>(sizeof(offset)) || found.empty())
        return std::nullopt;
    memcpy(&offset, std::to_address(found.end()), sizeof(offset));
    return offset;
}

// Interprets any four bytes of the code as an offset from the object, as a RIP-relative displacement, and as an
// absolute address. In programs that are not relocated, addresses are below 4 GiB.
void places_x86_64(const Code& code, uint64_t object, const std::function<void(uint64_t)>& found)
{
    for (size_t at = 0; at + sizeof(int32_t) <= code.bytes.size(); at++) {
        int32_t offset = 0;
        memcpy(&offset, &code.bytes[at], sizeof(offset));
        const auto distance = static_cast<uint64_t>(int64_t{offset});
        found(object + distance);
        found(static_cast<uint32_t>(offset));
        found(code.address + at + sizeof(offset) + distance);
    }
}

// Code: mrs x0, tpidr_el0; sub x0, x0, #SIZE; ret. glibc's struct pthread lies before the thread pointer, and its size
// depends on the version.
std::optional<uint64_t> thread_pointer_arm64(const Code& code)
{
    using namespace arm64;
    std::array<std::optional<uint64_t>, 32> below{}; // distance of each register below the thread pointer
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        if (ret.matches(word))
            return below[0];
        if (bti.matches(word) || nop.matches(word))
            continue;
        if (read_thread_pointer.matches(word))
            below[rd(word)] = 0;
        else if (sub_immediate.matches(word) && rn(word) != x31 && below[rn(word)])
            below[rd(word)] = *below[rn(word)] + added(word);
        else
            return std::nullopt;
    }
    return std::nullopt;
}

// Code: mrs x0, tpidr_el0; add x0, x0, #HIGH, lsl #12; add x0, x0, #LOW; ldr x0, [x0]
std::optional<int32_t> variable_arm64(const Code& code)
{
    using namespace arm64;
    std::array<std::optional<uint64_t>, 32> above{}, loaded{};
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const uint32_t word = words[i];
        if (ret.matches(word))
            return loaded[0] ? std::optional(static_cast<int32_t>(*loaded[0])) : std::nullopt;
        if (is_conditional(word) || goes_elsewhere(word) || bl.matches(word) || blr.matches(word))
            return std::nullopt;
        const auto access = access_of(word);
        if (access && !access->loads)
            continue;
        std::optional<uint64_t> place, value;
        if (read_thread_pointer.matches(word))
            place = 0;
        else if (add_immediate.matches(word) && rn(word) != x31 && above[rn(word)])
            place = *above[rn(word)] + added(word);
        else if (load.matches(word) && rn(word) != x31 && above[rn(word)])
            value = *above[rn(word)] + loaded_from(word);
        above[rd(word)] = place;
        loaded[rd(word)] = value && *value <= INT32_MAX ? value : std::nullopt;
        if (access && access->count == 2)
            above[access->numbers[1]] = loaded[access->numbers[1]] = std::nullopt;
    }
    return std::nullopt;
}

// Assumes that a pointer loaded from a known address (a library's GOT) points to the object.
void places_arm64(const Code& code, uint64_t object, const std::function<void(uint64_t)>& found)
{
    using namespace arm64;
    Registers state;
    const Words words(code);
    for (size_t i = 0; i < words.size(); i++) {
        const auto access = access_of(words[i]);
        if (access && access->loads && state[access->base].kind == Argument::constant)
            found(state[access->base].value + static_cast<uint64_t>(access->offset));
        state.follow(words[i], words.address(i));
        const size_t number = rd(words[i]);
        if (state[number].kind == Argument::loaded)
            state.set(number, {Argument::constant, object});
        else if (state[number].kind == Argument::constant)
            found(state[number].value);
    }
}

} // namespace

const ThreadStorage storage_on_x86_64{0x310, nullptr, variable_x86_64, places_x86_64};
const ThreadStorage storage_on_arm64{0x110, thread_pointer_arm64, variable_arm64, places_arm64};

} // namespace gpusnoop
