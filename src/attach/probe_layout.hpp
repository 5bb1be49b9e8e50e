// SPDX-License-Identifier: Apache-2.0
// Notation in which the probe table describes the arguments of a call, and its compile-time parser.
#pragma once

#include "attach/calling_convention.hpp"
#include "bpf/shared/probe.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace gpusnoop {

// Layouts that CUDA and HIP share.
inline constexpr const char* launch_params =
    "(func, int grid_x, int grid_y, int grid_z, int block_x, int block_y, int block_z, int smem, stream)";
inline constexpr const char* launch_dim3 = "(func, dim3 grid, dim3 block, _, smem, stream)";
// CUDA_LAUNCH_PARAMS and hipFunctionLaunchParams
inline constexpr const char* module_launch_list =
    "(*{0 func, 8 dim3 grid, 20 dim3 block, 32 int smem, 40 stream, 56}, int count)";
// cudaLaunchParams and hipLaunchParams
inline constexpr const char* launch_list = "(*{0 func, 8 dim3 grid, 20 dim3 block, 40 smem, 48 stream, 56}, int count)";

// CUDA_MEMCPY2D and hip_Memcpy2D
inline constexpr const char* copy_2d =
    "(*{16 int src_type, 24 src_host, 32 src, 72 int dst_type, 80 dst_host, 88 dst, 112 bytes, 120 height})";
// cudaMemcpy3DParms and hipMemcpy3DParms
inline constexpr const char* copy_3d_runtime =
    "elements (*{0 src_array, 32 src, 64 dst_array, 96 dst, 128 bytes, 136 height, 144 depth, 152 int direction})";
// cudaMemcpy3DPeerParms and hipMemcpy3DPeerParms
inline constexpr const char* copy_3d_peer =
    "p2p elements (*{0 src_array, 32 src, 72 dst_array, 104 dst, 144 bytes, 152 height, 160 depth})";
// CUDA_MEMCPY3D_BATCH_OP, cudaMemcpy3DBatchOp and hipMemcpy3DBatchOp
inline constexpr const char* copies_3d =
    "async operand-types elements (count, "
    "*{0 int src_type, 8 src, 40 int dst_type, 48 dst, 80 bytes, 88 height, 96 depth, 112})";

// CUDA_ARRAY3D_DESCRIPTOR and HIP_ARRAY3D_DESCRIPTOR
inline constexpr const char* array_3d = "array (out, *{0 bytes, 8 height, 16 depth, 24 int format, 28 int channels})";

// A layout is written like a C prototype: attributes of the call, then its arguments in order, with names for the
// arguments to read. Examples: "async set (dst, _, bytes, stream)" and "(func, dim3 grid, dim3 block, _, smem,
// stream)".
//   dst          a 64-bit argument (unread arguments at the end of the list may be omitted)
//   int device   a 32-bit argument
//   _            an argument that is not read
//   dim3 grid    a structure of three integers, by value
//   [bytes, _]   any other structure of 64-bit words, by value. A "?" after a word, as in [bytes?, _], marks it as
//                optional. A layout can read only one block of memory: the stack, or the target of one pointer. If
//                other words are in another block, the optional word is not read.
//   *{8 bytes, 16 int format, 56}
//                a pointer to a structure with fields at bytes 8 and 16; the number at the end is the size of one
//                structure, for arrays of structures
//   out pitch+8  an argument with two names: it points to the result "out", and "pitch" is stored 8 bytes after it
// A layout may be split, as in "(func)" and "async (_, stream)": each pair of brackets starts again at the first
// argument. An invalid layout does not compile. The parser derives registers and stack slots from the machine's calling
// convention.
class LayoutParser {
public:
    consteval explicit LayoutParser(Machine machine = host) : machine_(machine)
    {
        row_.element_bytes = 1;
        row_.node = NODE_UNSPECIFIED;
        for (operand& op : row_.args)
            op = {WORD_ZERO, PART_WHOLE};
        for (int factor : {ARG_BYTES, ARG_HEIGHT, ARG_DEPTH})
            row_.args[factor].word = WORD_ONE;
    }

    consteval LayoutParser& parse(std::string_view text)
    {
        rest_ = text;
        while (!rest_.empty()) {
            if (skip('('))
                arguments();
            else
                attribute(word());
            skip(' ');
        }
        return *this;
    }

    consteval const probe_row& row() const { return row_; }

private:
    static consteval argument argument_called(std::string_view name)
    {
        constexpr std::pair<std::string_view, argument> names[] = {
            {"func", ARG_FUNC},
            {"stream", ARG_STREAM},
            {"grid", ARG_GRID_X},
            {"grid_x", ARG_GRID_X},
            {"grid_y", ARG_GRID_Y},
            {"grid_z", ARG_GRID_Z},
            {"block", ARG_BLOCK_X},
            {"block_x", ARG_BLOCK_X},
            {"block_y", ARG_BLOCK_Y},
            {"block_z", ARG_BLOCK_Z},
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
        throw std::logic_error("unknown argument name");
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
            // Each name sets two fields: the memory type, which copies use, and the type of allocation, which memory
            // accounting uses.
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
            throw std::logic_error("unknown attribute");
    }

    consteval void arguments()
    {
        CallingConvention convention(machine_);
        do {
            skip(' ');
            if (skip_word("dim3 ")) { // x and y share a word
                const ArgumentPlace place = convention.structure(2);
                const int first = argument_called(word());
                row_.args[first] = read(place, 0, PART_LOW);
                row_.args[first + 1] = read(place, 0, PART_HIGH);
                row_.args[first + 2] = read(place, 1, PART_LOW);
            } else if (skip('[')) {
                const std::string_view words = rest_.substr(0, rest_.find(']'));
                const ArgumentPlace place = convention.structure(1 + std::ranges::count(words, ','));
                unsigned at = 0;
                do
                    names(place, at++);
                while (skip(','));
                expect(']');
            } else {
                names(convention.word(), 0);
            }
        } while (skip(','));
        expect(')');
        if (optional_ && (row_.block_base == BLOCK_NONE || row_.block_base == block_base(optional_->place)))
            row_.args[optional_->which] = read(optional_->place, optional_->word, PART_WHOLE);
        optional_.reset();
    }

    // Parses the names that the layout gives to one 8-byte word: an argument, or part of a structure passed by value.
    consteval void names(ArgumentPlace place, unsigned at)
    {
        while (!rest_.empty() && !is_one_of(rest_.front(), ",])")) {
            if (skip(' ') || skip('_'))
                continue;
            if (skip('*')) {
                if (place.kind != ArgumentPlace::in_register)
                    throw std::logic_error("a pointer to a structure must be in a register");
                fields({ArgumentPlace::pointed, place.number});
                continue;
            }
            const uint8_t part = width();
            const std::string_view name = word();
            const argument which = argument_called(name);
            if (skip('?')) {
                optional_ = {which, place, at};
                continue;
            }
            row_.args[which] = read(place, at, part);
            if (skip('+'))
                (name == "out"     ? row_.out_offset
                 : name == "pitch" ? row_.pitch_offset
                                   : throw std::logic_error("only out and pitch may have an offset")) =
                    static_cast<uint8_t>(number());
        }
    }

    consteval void fields(ArgumentPlace structure)
    {
        expect('{');
        do {
            skip(' ');
            const unsigned offset = number();
            if (rest_.starts_with('}')) { // a number without a name: size of one structure
                use_block(block_base(structure), offset / 8);
                break;
            }
            skip(' ');
            if (skip_word("dim3 ")) {
                const int first = argument_called(word());
                for (unsigned i = 0; i < 3; i++)
                    row_.args[first + i] = field(structure, offset + 4 * i, PART_LOW);
            } else {
                const uint8_t part = width();
                row_.args[argument_called(word())] = field(structure, offset, part);
            }
        } while (skip(','));
        expect('}');
    }

    consteval operand field(ArgumentPlace structure, unsigned offset, uint8_t part)
    {
        if (offset % (part == PART_WHOLE ? 8 : 4))
            throw std::logic_error("misaligned structure field");
        return read(structure, offset / 8, offset % 8 ? static_cast<uint8_t>(PART_HIGH) : part);
    }

    // Returns the operand that reads one word of an argument. place: location of the argument. at: index of the word.
    consteval operand read(ArgumentPlace place, unsigned at, uint8_t part)
    {
        if (place.kind == ArgumentPlace::in_register)
            return {static_cast<uint8_t>(place.number + at), part};
        if (place.kind == ArgumentPlace::on_stack)
            at += place.number;
        use_block(block_base(place), at + 1);
        return {static_cast<uint8_t>(WORD_BLOCK + at), part};
    }

    static consteval uint8_t block_base(ArgumentPlace place)
    {
        return place.kind == ArgumentPlace::on_stack ? static_cast<uint8_t>(BLOCK_STACK)
                                                     : static_cast<uint8_t>(BLOCK_REGISTER + place.number);
    }

    consteval void use_block(uint8_t base, unsigned words)
    {
        if (words > BLOCK_WORDS_MAX || (row_.block_base != BLOCK_NONE && row_.block_base != base))
            throw std::logic_error("a layout may read only one block of memory");
        row_.block_base = base;
        row_.block_words = std::max(row_.block_words, static_cast<uint8_t>(words));
    }

    consteval uint8_t width() { return skip_word("int ") ? PART_LOW : PART_WHOLE; }

    consteval unsigned number()
    {
        unsigned n = 0;
        if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9')
            throw std::logic_error("expected a number");
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

    consteval bool skip_word(std::string_view text)
    {
        const bool here = rest_.starts_with(text);
        if (here)
            rest_.remove_prefix(text.size());
        return here;
    }

    consteval void expect(char c)
    {
        if (!skip(c))
            throw std::logic_error("expected a bracket");
    }

    static consteval bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

    consteval std::string_view word()
    {
        std::string_view text = rest_.substr(0, rest_.find_first_of(" ,+?*]})"));
        rest_.remove_prefix(text.size());
        return text;
    }

    // A word marked with "?". It is read only if no other word of the layout needs another block of memory.
    struct Optional {
        argument which;
        ArgumentPlace place;
        unsigned word;
    };

    std::string_view rest_;
    Machine machine_;
    std::optional<Optional> optional_;
    probe_row row_{};
};

struct Layout {
    probe_row row; // row for this machine
    // implicit, so that tables can contain strings
    consteval Layout(const char* text) : row(LayoutParser().parse(text).row()) {} // NOLINT
    // shared: text that several calls have in common. own: text for this call only.
    consteval Layout(const char* shared, const char* own) : row(LayoutParser().parse(shared).parse(own).row()) {}
};

} // namespace gpusnoop
