// SPDX-License-Identifier: Apache-2.0
#include "probes.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace gpusnoop {
namespace {

// The layout of a call is written as in "func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1.l stream:s2":
//   rdi .. r9   a register; s0, s1, ... the 8-byte stack slots behind the return address (psABI 3.2.3)
//   .l .h       its lower or upper 32 bits; without: all 64
//   rdi[12.l]   32 bits at byte 12 of the structure that the register points to
// A mistake in one of them does not compile.
class LayoutParser {
public:
    consteval explicit LayoutParser(std::string_view text) : rest_(text) {}

    consteval probe_row parse()
    {
        for (operand& op : row_.args)
            op = {WORD_NONE, PART_WHOLE};
        while (!rest_.empty()) {
            skip(' ');
            std::string_view name = until(':');
            if (name == "grid" || name == "block") {
                int first = name == "grid" ? ARG_GRID_X : ARG_BLOCK_X;
                for (int i = 0; i < 3; i++) {
                    row_.args[first + i] = place();
                    if (!skip(','))
                        break; // legacy launches have a two-dimensional grid
                }
            } else {
                row_.args[argument(name)] = place();
            }
        }
        return row_;
    }

private:
    static consteval int argument(std::string_view name)
    {
        constexpr std::pair<std::string_view, int> names[] = {
            {"func", ARG_FUNC},   {"stream", ARG_STREAM}, {"smem", ARG_SMEM},
            {"out", ARG_OUT},     {"name", ARG_NAME},     {"handle", ARG_HANDLE},
            {"count", ARG_COUNT}, {"device", ARG_DEVICE}, {"list", -1},
        };
        for (auto [text, value] : names)
            if (text == name && value >= 0)
                return value;
        throw std::logic_error("no such argument");
    }

    consteval operand place()
    {
        if (skip('s')) {
            unsigned slot = number();
            use_block(BLOCK_STACK, slot + 1);
            return {static_cast<uint8_t>(WORD_BLOCK + slot), part()};
        }
        uint8_t reg = register_number();
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

    consteval std::string_view until(char c)
    {
        size_t at = rest_.find(c);
        if (at == std::string_view::npos)
            throw std::logic_error("a colon was expected");
        std::string_view text = rest_.substr(0, at);
        rest_.remove_prefix(at + 1);
        return text;
    }

    std::string_view rest_;
    probe_row row_{};
};

struct Layout {
    probe_row row;
    consteval Layout(const char* text) : row(LayoutParser(text).parse()) {} // NOLINT: implicit, for the table
};

// A structure that is passed as a list of its kind is read element by element: its whole size is the block.
consteval Layout list_of(const char* text, unsigned words)
{
    Layout layout(text);
    layout.row.block_words = static_cast<uint8_t>(words);
    return layout;
}

enum Variants : uint8_t { single, ptsz }; // ptsz: the same function for per-thread default streams is exported, too

struct Entry {
    std::string_view symbol;
    Variants variants;
    Library library;
    uint8_t runtimes;
    probe_kind kind;
    Layout layout;
};

constexpr const char* launch_params = "func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1.l stream:s2";
// dim3 by value takes two registers: x and y packed in the first, z in the second.
constexpr const char* launch_dim3 = "func:rdi grid:rsi.l,rsi.h,rdx.l block:rcx.l,rcx.h,r8.l smem:s0 stream:s1";

constexpr auto driver = Library::driver;
constexpr auto runtime = Library::runtime;

constexpr Entry table[] = {
    // Launches, driver
    {"cuLaunchKernel", ptsz, driver, any_runtime, KIND_LAUNCH, launch_params},
    {"cuLaunchCooperativeKernel", ptsz, driver, any_runtime, KIND_LAUNCH, launch_params},
    {"cuLaunchKernelEx", ptsz, driver, any_runtime, KIND_LAUNCH,
     "func:rsi grid:rdi[0.l],rdi[4.l],rdi[8.l] block:rdi[12.l],rdi[16.l],rdi[20.l] smem:rdi[24.l] stream:rdi[32]"},
    {"cuLaunchCooperativeKernelMultiDevice", single, driver, any_runtime, KIND_LAUNCH_LIST,
     list_of("func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[32.l] "
             "stream:rdi[40] count:rsi.l",
             7)},
    {"cuLaunch", single, driver, any_runtime, KIND_LAUNCH_LEGACY, "func:rdi"},
    {"cuLaunchGrid", single, driver, any_runtime, KIND_LAUNCH_LEGACY, "func:rdi grid:rsi.l,rdx.l"},
    {"cuLaunchGridAsync", single, driver, any_runtime, KIND_LAUNCH_LEGACY, "func:rdi grid:rsi.l,rdx.l stream:rcx"},
    {"cuGraphLaunch", ptsz, driver, any_runtime, KIND_GRAPH_LAUNCH, "func:rdi stream:rsi"},
    {"cuLaunchHostFunc_v2", ptsz, driver, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"}, // driver 595
    {"cuLaunchHostFunc", ptsz, driver, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},
    {"cuStreamAddCallback", ptsz, driver, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},

    // Launches, runtime. __cudaLaunchKernel is not here: it is a jump to cudaLaunchKernel (12.4, 13.0).
    {"cudaLaunchKernel", ptsz, runtime, any_runtime, KIND_LAUNCH, launch_dim3},
    {"cudaLaunchCooperativeKernel", ptsz, runtime, any_runtime, KIND_LAUNCH, launch_dim3},
    {"cudaLaunchKernelExC", ptsz, runtime, any_runtime, KIND_LAUNCH,
     "func:rsi grid:rdi[0.l],rdi[4.l],rdi[8.l] block:rdi[12.l],rdi[16.l],rdi[20.l] smem:rdi[24] stream:rdi[32]"},
    {"cudaLaunchCooperativeKernelMultiDevice", single, runtime, any_runtime, KIND_LAUNCH_LIST,
     list_of("func:rdi[0] grid:rdi[8.l],rdi[12.l],rdi[16.l] block:rdi[20.l],rdi[24.l],rdi[28.l] smem:rdi[40] "
             "stream:rdi[48] count:rsi.l",
             7)},
    {"cudaGraphLaunch", ptsz, runtime, any_runtime, KIND_GRAPH_LAUNCH, "func:rdi stream:rsi"},
    {"cudaLaunchHostFunc", ptsz, runtime, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},
    {"cudaStreamAddCallback", ptsz, runtime, any_runtime, KIND_HOST_FUNC, "func:rsi stream:rdi"},

    // What legacy launches use
    {"cuFuncSetBlockShape", single, driver, any_runtime, KIND_SHAPE, "handle:rdi block:rsi.l,rdx.l,rcx.l"},
    {"cuFuncSetSharedSize", single, driver, any_runtime, KIND_SHAPE, "handle:rdi smem:rsi.l"},

    // Stream capture: launches are recorded, not executed
    {"cuStreamBeginCapture", ptsz, driver, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamBeginCapture_v2", ptsz, driver, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamBeginCaptureToGraph", ptsz, driver, any_runtime, KIND_CAPTURE_BEGIN, "stream:rdi"},
    {"cuStreamEndCapture", ptsz, driver, any_runtime, KIND_CAPTURE_END, "stream:rdi"},

    // Kernel names
    {"cuModuleGetFunction", single, driver, any_runtime, KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"cuLibraryGetKernel", single, driver, any_runtime, KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"cuKernelGetFunction", single, driver, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"__cudaGetKernel", single, runtime, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaGetKernel", single, runtime, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaGetFuncBySymbol", single, runtime, any_runtime, KIND_GET_ALIAS, "out:rdi handle:rsi"},
    {"cudaLibraryGetKernel", single, runtime, cudart13, KIND_GET_FUNCTION, "out:rdi name:rdx"},
    {"__cudaRegisterFunction", single, runtime, any_runtime, KIND_REGISTER, "handle:rsi name:rcx"},

    // Contexts, for the device of a launch
    {"cuCtxCreate", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:rdx.l"},
    {"cuCtxCreate_v2", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:rdx.l"},
    {"cuCtxCreate_v3", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:r8.l"},
    {"cuCtxCreate_v4", single, driver, any_runtime, KIND_CONTEXT_CREATE, "out:rdi device:rcx.l"},
    {"cuDevicePrimaryCtxRetain", single, driver, any_runtime, KIND_CONTEXT_NEW, "out:rdi device:rsi.l"},
    {"cuCtxSetCurrent", single, driver, any_runtime, KIND_CONTEXT_SET, "handle:rdi"},
    {"cuCtxPushCurrent", single, driver, any_runtime, KIND_CONTEXT_SET, "handle:rdi"},
    {"cuCtxPushCurrent_v2", single, driver, any_runtime, KIND_CONTEXT_SET, "handle:rdi"},
    {"cuCtxPopCurrent", single, driver, any_runtime, KIND_CONTEXT_POP, "out:rdi"},
    {"cuCtxPopCurrent_v2", single, driver, any_runtime, KIND_CONTEXT_POP, "out:rdi"},
    {"cudaSetDevice", single, runtime, any_runtime, KIND_DEVICE_SET, "device:rdi.l"},
};

Probe make_probe(const Entry& entry, std::string_view suffix)
{
    Probe probe{std::string(entry.symbol) += suffix, entry.library, entry.runtimes, entry.layout.row};
    probe.row.kind = static_cast<uint8_t>(entry.kind);
    probe.row.layer = entry.library == Library::runtime ? LAYER_RUNTIME : LAYER_DRIVER;
    probe.row.per_thread_stream = !suffix.empty();
    return probe;
}

} // namespace

std::vector<Probe> probes(Library library, std::span<const probe_kind> kinds)
{
    std::vector<Probe> selected;
    for (const Entry& entry : table) {
        if (entry.library != library || std::ranges::find(kinds, entry.kind) == kinds.end())
            continue;
        selected.push_back(make_probe(entry, ""));
        if (entry.variants == ptsz)
            selected.push_back(make_probe(entry, "_ptsz"));
    }
    return selected;
}

Runtime runtime_of(std::string_view soname)
{
    // libcudart.so.12, and libcudart-d0da41ae.so.11.0 as wheels rename it.
    const size_t at = soname.find(".so.");
    if (!soname.starts_with("libcudart") || at == std::string_view::npos)
        return any_runtime;
    std::string_view major = soname.substr(at + 4);
    major = major.substr(0, major.find('.'));
    return major == "11" ? cudart11 : major == "12" ? cudart12 : major == "13" ? cudart13 : any_runtime;
}

bool applies(const Probe& probe, Runtime runtime)
{
    return probe.runtimes == any_runtime || (probe.runtimes & runtime) != 0;
}

} // namespace gpusnoop
