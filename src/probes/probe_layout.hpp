// SPDX-License-Identifier: Apache-2.0
// The language in which the probe table says where a call keeps its arguments.
#pragma once

#include "bpf/shared/probe.h"
#include "probes/calling_convention.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace gpusnoop {

// A call is written as in "func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1.l stream:s2":
//   rdi .. r9   a register; s0, s1, ... the 8-byte stack slots behind the return address (psABI 3.2.3)
//   .l .h       its lower or upper 32 bits; without: all 64
//   rdi[12.l]   32 bits at byte 12 of the structure that the register points to
//   rdi+8       of out and pitch: 8 bytes behind where the register points
//   words:7     the size of the structure, in 8 bytes, where a list of its kind is read element by element
//   large:1x3   the second argument is a structure of 3 words, passed by value
// and in "async h2d dst:rdi src:rsi bytes:rdx stream:rcx": words without a place say what the call does.
// A mistake in one of them does not compile. Places are those of x86-64; where another machine has them follows from
// its calling convention.
class LayoutParser {
public:
    consteval explicit LayoutParser(Machine machine = host) : machine_(machine)
    {
        row_.element_bytes = 1;
        row_.node = NODE_UNTOLD;
        for (operand& op : row_.args)
            op = {WORD_ZERO, PART_WHOLE};
        for (int factor : {ARG_BYTES, ARG_HEIGHT, ARG_DEPTH})
            row_.args[factor].word = WORD_ONE;
    }

    consteval LayoutParser& parse(std::string_view text)
    {
        rest_ = text;
        while (!rest_.empty()) {
            skip(' ');
            std::string_view name = word();
            if (!skip(':')) {
                attribute(name);
            } else if (name == "words") {
                if (row_.block_base == BLOCK_NONE)
                    throw std::logic_error("the size of no structure");
                use_block(row_.block_base, number());
            } else if (name == "large") {
                do {
                    const unsigned first = number();
                    skip('x');
                    convention_.by_value(first, number());
                } while (skip(','));
            } else if (name == "grid" || name == "block") {
                int first = name == "grid" ? ARG_GRID_X : ARG_BLOCK_X;
                for (int i = 0; i < 3; i++) {
                    row_.args[first + i] = place();
                    if (!skip(','))
                        break; // legacy launches have a two-dimensional grid
                }
            } else {
                const int which = argument(name);
                row_.args[which] = place(which);
                if (skip('+'))
                    (name == "out"     ? row_.out_offset
                     : name == "pitch" ? row_.pitch_offset
                                       : throw std::logic_error("only results have an offset")) =
                        static_cast<uint8_t>(number());
            }
        }
        return *this;
    }

    consteval const probe_row& row() const { return row_; }

private:
    static consteval int argument(std::string_view name)
    {
        constexpr std::pair<std::string_view, int> names[] = {
            {"func", ARG_FUNC},
            {"stream", ARG_STREAM},
            {"smem", ARG_SMEM},
            {"out", ARG_OUT},
            {"name", ARG_NAME},
            {"handle", ARG_HANDLE},
            {"count", ARG_COUNT},
            {"device", ARG_DEVICE},
            {"dst", ARG_DESTINATION},
            {"src", ARG_SOURCE},
            {"bytes", ARG_BYTES},
            {"height", ARG_HEIGHT},
            {"depth", ARG_DEPTH},
            {"direction", ARG_DIRECTION},
            {"dst_type", ARG_DESTINATION_TYPE},
            {"src_type", ARG_SOURCE_TYPE},
            {"dst_host", ARG_DESTINATION_HOST},
            {"src_host", ARG_SOURCE_HOST},
            {"dst_array", ARG_DESTINATION_ARRAY},
            {"src_array", ARG_SOURCE_ARRAY},
            {"address", ARG_ADDRESS},
            {"pitch", ARG_PITCH},
            {"location", ARG_LOCATION},
            {"format", ARG_FORMAT},
            {"channels", ARG_CHANNELS},
            {"channel_bits", ARG_CHANNEL_BITS},
            {"levels", ARG_LEVELS},
            {"graph", ARG_GRAPH},
            {"child", ARG_CHILD},
            {"node_type", ARG_NODE_TYPE},
            {"root", ARG_ROOT},
            {"reduction", ARG_REDUCTION},
        };
        for (auto [text, value] : names)
            if (text == name)
                return value;
        throw std::logic_error("no such argument");
    }

    consteval void attribute(std::string_view name)
    {
        struct Attribute {
            std::string_view text;
            uint8_t probe_row::*field;
            uint8_t value;
        };
        constexpr Attribute attributes[] = {
            {"often", &probe_row::often, 1},
            {"async", &probe_row::asynchronous, 1},
            {"x2", &probe_row::element_bytes, 2},
            {"x4", &probe_row::element_bytes, 4},
            {"elements", &probe_row::array_elements, 1},
            {"operand-types", &probe_row::types, TYPES_OPERAND},
            {"hip5-types", &probe_row::types, TYPES_HIP5},
            {"hip6-types", &probe_row::types, TYPES_HIP6},
            {"h2d", &probe_row::direction, DIRECTION_H2D},
            {"d2h", &probe_row::direction, DIRECTION_D2H},
            {"d2d", &probe_row::direction, DIRECTION_D2D},
            {"h2h", &probe_row::direction, DIRECTION_H2H},
            {"p2p", &probe_row::direction, DIRECTION_P2P},
            {"set", &probe_row::direction, DIRECTION_SET},
            {"prefetch", &probe_row::direction, DIRECTION_PREFETCH},
            // Where the address leads to, and what the process holds by it: copies ask for one, owners for the other.
            {"device-memory", &probe_row::memory, MEMORY_DEVICE},
            {"device-memory", &probe_row::holding, HOLDING_DEVICE},
            {"pool-memory", &probe_row::memory, MEMORY_DEVICE},
            {"pool-memory", &probe_row::holding, HOLDING_POOL},
            {"managed-memory", &probe_row::memory, MEMORY_MANAGED},
            {"managed-memory", &probe_row::holding, HOLDING_MANAGED},
            {"pinned-memory", &probe_row::memory, MEMORY_PINNED},
            {"pinned-memory", &probe_row::holding, HOLDING_PINNED},
            {"registered-memory", &probe_row::memory, MEMORY_PINNED},
            {"registered-memory", &probe_row::holding, HOLDING_REGISTERED},
            {"imported-memory", &probe_row::memory, MEMORY_DEVICE},
            {"imported-memory", &probe_row::holding, HOLDING_IMPORTED},
            {"mapped-memory", &probe_row::memory, MEMORY_DEVICE},
            {"mapped-memory", &probe_row::holding, HOLDING_MAPPED},
            {"array", &probe_row::holding, HOLDING_ARRAY},
            {"physical", &probe_row::holding, HOLDING_VMM},
            {"imported-physical", &probe_row::holding, HOLDING_IMPORTED},
            {"multicast", &probe_row::holding, HOLDING_MULTICAST},
            {"external", &probe_row::holding, HOLDING_EXTERNAL},
            {"addresses", &probe_row::holding, HOLDING_RESERVED},
            {"graph-node", &probe_row::holding, HOLDING_GRAPH},
            {"pool", &probe_row::holding, HOLDING_POOL_OBJECT},
            {"kernel-node", &probe_row::node, NODE_KERNEL},
            {"copy-node", &probe_row::node, NODE_COPY},
            {"set-node", &probe_row::node, NODE_SET},
            {"host-node", &probe_row::node, NODE_HOST},
            {"other-node", &probe_row::node, NODE_OTHER},
            {"wait-stream", &probe_row::wait, WAIT_STREAM},
            {"wait-context", &probe_row::wait, WAIT_CONTEXT},
            {"wait-event", &probe_row::wait, WAIT_EVENT},
            {"wait-value", &probe_row::wait, WAIT_VALUE},
            {"wait-free", &probe_row::wait, WAIT_FREE},
            {"poll", &probe_row::wait, WAIT_POLL},
        };
        bool known = false;
        for (auto [text, field, value] : attributes) {
            if (text == name)
                row_.*field = value;
            known |= text == name;
        }
        if (!known)
            throw std::logic_error("no such attribute");
    }

    consteval operand place(int which = ARGUMENTS)
    {
        ArgumentPlace at = skip('s') ? ArgumentPlace{ArgumentPlace::on_stack, static_cast<uint8_t>(number())}
                                     : ArgumentPlace{ArgumentPlace::in_register, register_number()};
        if (machine_ == Machine::arm64)
            at = convention_.on_arm64(at);
        if (at.kind == ArgumentPlace::on_stack) {
            use_block(BLOCK_STACK, at.number + 1u);
            return {static_cast<uint8_t>(WORD_BLOCK + at.number), part()};
        }
        if (at.kind == ArgumentPlace::pointed) {
            const auto base = static_cast<uint8_t>(BLOCK_REGISTER + at.number);
            // Where there are two structures, the size of a copy is worth more than what its destination is.
            if (which == ARG_DESTINATION && row_.block_base != BLOCK_NONE && row_.block_base != base)
                return {WORD_ZERO, PART_WHOLE};
            use_block(base, at.word + 1u);
            return {static_cast<uint8_t>(WORD_BLOCK + at.word), part()};
        }
        const uint8_t reg = at.number;
        if (!skip('['))
            return {reg, part()};
        unsigned offset = number();
        uint8_t width = part();
        if (!skip(']') || offset % 4 || (width == PART_WHOLE && offset % 8))
            throw std::logic_error("bad structure field");
        use_block(static_cast<uint8_t>(BLOCK_REGISTER + reg), offset / 8 + 1);
        if (width == PART_LOW && offset % 8)
            width = PART_HIGH;
        return {static_cast<uint8_t>(WORD_BLOCK + offset / 8), width};
    }

    consteval void use_block(uint8_t base, unsigned words)
    {
        if (words > BLOCK_WORDS_MAX || (row_.block_base != BLOCK_NONE && row_.block_base != base))
            throw std::logic_error("one block of memory per call");
        row_.block_base = base;
        row_.block_words = std::max(row_.block_words, static_cast<uint8_t>(words));
    }

    consteval uint8_t register_number()
    {
        constexpr std::string_view names[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
        for (uint8_t i = 0; i < 6; i++) {
            if (rest_.starts_with(names[i])) {
                rest_.remove_prefix(names[i].size());
                return i;
            }
        }
        throw std::logic_error("no such register");
    }

    consteval uint8_t part()
    {
        if (!skip('.'))
            return PART_WHOLE;
        return skip('h') ? PART_HIGH : skip('l') ? PART_LOW : throw std::logic_error("no such part");
    }

    consteval unsigned number()
    {
        unsigned n = 0;
        if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9')
            throw std::logic_error("a number was expected");
        for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; rest_.remove_prefix(1))
            n = n * 10 + static_cast<unsigned>(rest_.front() - '0');
        return n;
    }

    consteval bool skip(char c)
    {
        if (rest_.empty() || rest_.front() != c)
            return false;
        rest_.remove_prefix(1);
        return true;
    }

    consteval std::string_view word()
    {
        std::string_view text = rest_.substr(0, rest_.find_first_of(": "));
        rest_.remove_prefix(text.size());
        return text;
    }

    std::string_view rest_;
    Machine machine_;
    CallingConvention convention_;
    probe_row row_{};
};

struct Layout {
    probe_row row;                                                                // of this machine
    consteval Layout(const char* text) : row(LayoutParser().parse(text).row()) {} // NOLINT: implicit, for the table
    // What a call shares with others, and what is its own.
    consteval Layout(const char* shared, const char* own) : row(LayoutParser().parse(shared).parse(own).row()) {}
};

} // namespace gpusnoop
