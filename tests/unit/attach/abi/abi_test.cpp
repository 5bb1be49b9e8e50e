// SPDX-License-Identifier: Apache-2.0
// Tests every row of the probe table with compiled calls: the row must read the arguments that the caller passed.
#include "calls.hpp"

#include "tests/unit/attach/all_probes.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>

namespace {

using abi::Call;
using abi::CallSet;
using abi::Passed;
using abi::Signature;
using gpusnoop::all_probes;
using gpusnoop::Library;
using gpusnoop::Probe;

// Returns a text such as " (cudart 11 12)", or "" if the row is for every version.
std::string runtimes_of(const Probe& probe)
{
    constexpr std::pair<gpusnoop::Runtime, std::string_view> runtimes[] = {
        {gpusnoop::cudart11, "11"}, {gpusnoop::cudart12, "12"}, {gpusnoop::cudart13, "13"},
        {gpusnoop::hip52, "5.2"},   {gpusnoop::hip5, "5.3"},    {gpusnoop::hip6, "6"},
    };
    std::string versions;
    for (auto [bit, version] : runtimes)
        if (probe.runtimes & bit)
            versions += fmt::format(" {}", version);
    const std::string_view library = probe.library == Library::hip ? "hip" : "cudart";
    return versions.empty() ? "" : fmt::format(" ({}{})", library, versions);
}

bool is_list(const probe_row& row)
{
    return row.kind == KIND_LAUNCH_LIST || row.kind == KIND_COPY_BATCH_3D;
}

std::vector<CallSet> sets(bool real)
{
    std::vector<CallSet> chosen;
    std::ranges::copy_if(abi::call_sets(), std::back_inserter(chosen),
                         [&](const CallSet& set) { return (set.cuda != 0) == real; });
    return chosen;
}

// ---- Reads a call's arguments as a row describes them, like read_words() and argument() of bpf/base/probe.bpf.h

using Words = std::array<unsigned long long, WORD_BLOCK + BLOCK_WORDS_MAX>;

// Returns false if the call did not capture this memory.
bool read_memory(const Call& call, uint64_t address, size_t bytes, void* to)
{
    const std::span<const std::byte> stack = std::as_bytes(std::span(call.captured.stack));
    const std::pair<uint64_t, std::span<const std::byte>> regions[] = {
        {call.captured.sp, stack},
        {reinterpret_cast<uint64_t>(call.memory), call.memory},
    };
    for (const auto& [start, region] : regions) {
        if (address < start || address - start + bytes > region.size())
            continue;
        memcpy(to, region.data() + (address - start), bytes);
        return true;
    }
    return false;
}

std::optional<Words> read_call(const Call& call, const probe_row& row, size_t element)
{
    Words words{};
    std::ranges::copy(call.captured.registers, words.begin());
    if (row.block_base == BLOCK_NONE)
        return words;
    uint64_t block = row.block_base == BLOCK_STACK ? call.captured.sp + 8 * abi::first_slot
                                                   : call.captured.registers[row.block_base - BLOCK_REGISTER];
    size_t bytes = size_t{row.block_words} * 8;
    if (!read_memory(call, block + element * bytes, bytes, &words[WORD_BLOCK]))
        return std::nullopt;
    return words;
}

// ---- Comparison of the arguments read with those passed

uint64_t offset_of_result(const probe_row& row, int which)
{
    return which == ARG_OUT ? row.out_offset : which == ARG_PITCH ? row.pitch_offset : 0;
}

// On arm64 each large structure is passed by a pointer, but a row can describe only one block of memory. If a call has
// two structures, the row reads the one with the size of the copy, not the one with its destination (probe_layout.hpp).
bool in_another_block(const Call& call, int which)
{
    return abi::first_slot == 0 && which == ARG_DESTINATION &&
           std::ranges::count_if(call.parameters, [](const abi::Parameter& parameter) {
               return parameter.passed == Passed::fields && parameter.bytes > 16;
           }) > 1;
}

// Checks a row with a call of its function. Returns "right" or the errors.
std::string verdict(const Signature& signature, const Call& call, const probe_row& row)
{
    std::string found;
    size_t count = is_list(row) ? abi::elements : 1;
    for (size_t element = 0; element < count; element++) {
        std::optional<Words> words = read_call(call, row, element);
        if (!words)
            return "the row reads the wrong block of memory";
        std::map<int, uint64_t> passed = abi::passed_arguments(signature, call, element);
        for (int which = 0; which < ARGUMENTS; which++) {
            bool has = operand_present(row.args[which].word);
            if (has != (passed.contains(which) && !in_another_block(call, which))) {
                found += fmt::format("{} {}; ", has ? "reads an argument that was not passed:" : "does not read",
                                     abi::argument_name(which));
            } else if (has) {
                uint64_t value = operand_part(words->at(row.args[which].word), row.args[which].part);
                value += offset_of_result(row, which);
                if (value != passed[which])
                    found += fmt::format("{} of element {} is read as {:#x} and was passed as {:#x}; ",
                                         abi::argument_name(which), element, value, passed[which]);
            }
        }
    }
    return found.empty() ? "right" : found;
}

// Returns the 32-bit pieces of a call's arguments. Arguments narrower than 32 bits are omitted, because the places and
// sizes of the adjacent arguments determine their places.
std::vector<uint32_t> pieces(const Call& call)
{
    std::vector<uint32_t> all;
    for (size_t i = 0; i < call.parameters.size(); i++) {
        auto [form, bytes] = call.parameters[i];
        for (size_t piece = 0; piece < bytes / 4; piece++) {
            uint64_t word =
                form == Passed::pointer ? reinterpret_cast<uint64_t>(call.memory) : Call::word(i, piece / 2);
            all.push_back(static_cast<uint32_t>(piece % 2 ? word >> 32 : word));
        }
    }
    return all;
}

// Returns the 32-bit halves of the argument registers and stack slots.
std::vector<uint32_t> places(const Call& call)
{
    std::vector<uint32_t> halves;
    auto add = [&](uint64_t word) {
        halves.push_back(static_cast<uint32_t>(word));
        halves.push_back(static_cast<uint32_t>(word >> 32));
    };
    std::ranges::for_each(call.captured.registers, add);
    std::ranges::for_each(std::span(call.captured.stack).subspan(abi::first_slot), add);
    return halves;
}

bool in_same_place(const Call& ours, uint32_t our_piece, const Call& real, uint32_t real_piece)
{
    std::vector<uint32_t> a = places(ours), b = places(real);
    for (size_t i = 0; i < a.size(); i++)
        if (a[i] == our_piece && b[i] == real_piece)
            return true;
    return false;
}

void compare(const Call& ours, const Call& real)
{
    REQUIRE(ours.parameters == real.parameters);
    std::vector<uint32_t> our_pieces = pieces(ours), real_pieces = pieces(real);
    for (size_t i = 0; i < our_pieces.size(); i++) {
        INFO("piece " << i);
        CHECK(in_same_place(ours, our_pieces[i], real, real_pieces[i]));
    }
    for (size_t element = 0; element < abi::elements; element++)
        CHECK(ours.fields[element] == real.fields[element]);
}

} // namespace

TEST_CASE("every row reads what a compiled call passed", "[abi]")
{
    REQUIRE(!sets(false).empty());
    for (const CallSet& set : sets(false)) {
        for (const Probe& probe : all_probes()) {
            INFO(probe.symbol << runtimes_of(probe) << ", called by " << set.compiler);
            const Signature* signature = abi::find(set, probe);
            if (!signature)
                FAIL("no test call for this row: add its prototype to tests/unit/attach/abi/signatures.def");
            Call call;
            signature->make(call);
            CHECK(verdict(*signature, call, probe.row) == "right");
        }
    }
}

TEST_CASE("every signature has a row", "[abi]")
{
    std::vector<Probe> probes = all_probes();
    const CallSet set = sets(false).at(0);
    for (const Signature& signature : set.signatures) {
        INFO(signature.symbol);
        CHECK(std::ranges::any_of(probes, [&](const Probe& probe) {
            return probe.symbol == signature.symbol && abi::matches(probe, signature);
        }));
    }
}

// Tests the test itself: changes each operand of each row to a wrong one.
TEST_CASE("a wrong operand in a row is detected", "[abi]")
{
    for (const CallSet& set : sets(false)) {
        size_t dirty = 0;
        for (const Probe& probe : all_probes()) {
            const Signature* signature = abi::find(set, probe);
            if (!signature)
                continue; // reported by the first test case
            Call call;
            signature->make(call);
            Words words = read_call(call, probe.row, 0).value();
            auto noticed = [&](int which, operand wrong) {
                INFO(probe.symbol << ", called by " << set.compiler << ": " << abi::argument_name(which) << " at word "
                                  << int(wrong.word) << ", part " << int(wrong.part));
                probe_row row = probe.row;
                row.args[which] = wrong;
                CHECK(verdict(*signature, call, row) != "right");
            };
            for (int which = 0; which < ARGUMENTS; which++) {
                operand right = probe.row.args[which];
                if (!operand_present(right.word)) {
                    noticed(which, {0, PART_WHOLE});
                    continue;
                }
                noticed(which, {WORD_ZERO, PART_WHOLE});
                for (const operand& other : probe.row.args)
                    if (other.word != right.word)
                        noticed(which, other);
                for (part other : {PART_WHOLE, PART_LOW, PART_HIGH}) {
                    if (other == right.part)
                        continue;
                    // Reading 64 bits instead of 32 is detected only if the compiler left the upper half dirty.
                    if (other == PART_WHOLE && words[right.word] >> 32 == 0)
                        continue;
                    dirty += other == PART_WHOLE;
                    noticed(which, {right.word, static_cast<uint8_t>(other)});
                }
            }
            if (is_list(probe.row)) {
                probe_row row = probe.row;
                row.block_words++;
                CHECK(verdict(*signature, call, row) != "right");
            }
        }
        INFO(set.compiler);
        CHECK(dirty > 0);
    }
}

TEST_CASE("calls through CUDA's own prototypes pass the same arguments", "[abi]")
{
    if (sets(true).empty())
        SKIP("no CUDA headers");
    for (const CallSet& real : sets(true)) {
        std::vector<CallSet> ours = sets(false);
        auto same_compiler = std::ranges::find(ours, real.compiler, &CallSet::compiler);
        REQUIRE(same_compiler != ours.end());
        for (const Probe& probe : all_probes()) {
            INFO(probe.symbol << ", called by " << real.compiler << ", declared by CUDA " << real.cuda);
            const Signature* real_signature = abi::find(real, probe, probe.symbol);
            const Signature* our_signature = abi::find(*same_compiler, probe);
            if (!real_signature || !our_signature)
                continue; // reported by the next test case or by the first one
            Call real_call, our_call;
            real_signature->make(real_call);
            our_signature->make(our_call);
            compare(our_call, real_call);
            // The row must also be right for the real prototype.
            CHECK(verdict(*our_signature, real_call, probe.row) == "right");
        }
    }
}

TEST_CASE("all rows are in CUDA's headers", "[abi]")
{
    if (sets(true).empty())
        SKIP("no CUDA headers");
    const CallSet real = sets(true).at(0);
    std::string names;
    for (const Probe& probe : all_probes())
        if (probe.library != Library::hip && !abi::find(real, probe, probe.symbol))
            names += probe.symbol + runtimes_of(probe) + " ";
    if (!names.empty())
        SKIP(names << "- not in the headers of "
                   << "CUDA " << real.cuda);
}
