// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/fake_run.hpp"

#include "attach/refusal.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "tests/unit/attach/all_probes.hpp"
#include "tests/unit/output/captured.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cstring>
#include <fmt/format.h>
#include <sstream>
#include <stdexcept>
#include <sys/ptrace.h>

namespace gpusnoop {

// Null for tools that are not linked: "make try" links one of them.
#define TOOL(NAME) [[gnu::weak]] std::unique_ptr<Tool> make_##NAME();
#define EACH_TOOL                                                                                                      \
    TOOL(cudatop)                                                                                                      \
    TOOL(cudalaunch)                                                                                                   \
    TOOL(cudamemcpy)                                                                                                   \
    TOOL(cudasync)                                                                                                     \
    TOOL(gpualloc) TOOL(cudagraph) TOOL(nvioctl) TOOL(cudagap) TOOL(ncclwait) TOOL(gpuspend)
EACH_TOOL

namespace {

using namespace std::chrono_literals;

// struct pt_regs of x86-64 has the same layout as the beginning of struct user_regs_struct (arch/x86/include).
enum pt_regs_word { BP = 4, BX = 5, R9 = 8, R8 = 9, AX = 10, CX = 11, DX = 12, SI = 13, DI = 14, IP = 16, SP = 19 };
constexpr pt_regs_word argument_registers[] = {DI, SI, DX, CX, R8, R9};

constexpr uint64_t return_addresses = 0x00401234;
constexpr uint64_t function_address = 0x7f0012340000;
constexpr size_t stack_words = 8192, frame_words = 64;

std::unique_ptr<Tool> make_tool(std::string_view name)
{
#undef TOOL
#define TOOL(NAME)                                                                                                     \
    if (name == #NAME && make_##NAME)                                                                                  \
        return make_##NAME();
    EACH_TOOL
    throw std::invalid_argument(fmt::format("'{}' is not linked", name));
}

// Stores a value in the part of a word that an operand describes. The other half of the word gets bits that the
// program must ignore.
void store(uint64_t& word, uint8_t part, uint64_t value)
{
    if (part == PART_WHOLE)
        word = value;
    else if (part == PART_HIGH)
        word = (word & 0xffffffff) | value << 32;
    else
        word = (word & ~0xffffffffULL) | (value & 0xffffffff);
}

} // namespace

FakeRun::FakeRun(const std::string& words, const std::map<std::string, uint32_t>& entries)
{
    quiet_libbpf();
    std::istringstream stream(words);
    std::vector<std::string> list;
    for (std::string word; stream >> word;)
        list.push_back(word);
    std::vector<char*> arguments;
    std::ranges::transform(list, std::back_inserter(arguments), [](std::string& word) { return word.data(); });
    tool_ = make_tool(list.at(0));
    const Options& options = tool_->parse(static_cast<int>(arguments.size()), arguments.data());
    run_plan_ = tool_->plan();
    plan_ = plan_probes(run_plan_.programs);
    tool_->open();
    bpf_object* const object = tool_->opened().object;
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object)
        bpf_program__set_autoload(program, false);
    // loads entry and return programs, because test runs do not support session programs
    const Linker linker(object, Tier::perf, plan_.hooks, [] {});
    tool_->prepare(plan_.probes, {.tier = Tier::perf});
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "ring"), options.ring_mb << 20);
    for (const auto& [map, count] : entries)
        bpf_map__set_max_entries(bpf_object__find_map_by_name(object, map.c_str()), count);
    tool_->load_programs(false);
    tool_->load();
    const int shared = bpf_object__find_map_fd_by_name(object, ".data.fake");
    if (shared < 0)
        throw std::logic_error("the BPF object was not compiled with tests/bpf/fake.bpf.h");
    hit_map_ = std::make_unique<SharedArray<fake_hit>>(shared, 1);
    hit_ = const_cast<fake_hit*>(&(*hit_map_)[0]);
    losses_.emplace(object);
    ring_.emplace(object, [this](const void* data, size_t bytes) { tool_->receive(*output_, data, bytes); });
    loop_.emplace(signals_);
    const Running running{.loop = *loop_,
                          .since_ns = clock_ns(CLOCK_BOOTTIME),
                          .report = [] {},
                          .attached = [] { return std::string(); },
                          .lost = [this] { return losses_->sum(); },
                          .users = [] { return std::vector<pid_t>(); },
                          .probes = {}};
    tool_->begin(running);
    for (const auto& begin : run_plan_.hooks.begin)
        begin(running);
}

FakeRun::~FakeRun() = default;

bool FakeRun::handles(std::string_view symbol) const
{
    return std::ranges::find(plan_.probes, symbol, &Probe::symbol) != plan_.probes.end();
}

// Returns nullopt if the tool has no probe on the function.
std::optional<size_t> FakeRun::index_of(std::string_view symbol) const
{
    const auto is_called = [&](const Probe& probe) { return probe.symbol == symbol && applies(probe, runtime_); };
    const auto found = std::ranges::find_if(plan_.probes, is_called);
    if (found != plan_.probes.end())
        return static_cast<size_t>(found - plan_.probes.begin());
    if (std::ranges::none_of(all_probes(), is_called))
        throw std::invalid_argument(fmt::format("the probe table has no function {}", symbol));
    return std::nullopt;
}

FakeRun::Stack& FakeRun::stack()
{
    Stack& own = stacks_[std::this_thread::get_id()];
    if (!own.words)
        own.words = std::make_unique<std::vector<uint64_t>>(stack_words);
    return own;
}

// Returns the stack pointer of a new frame, where the return address is.
uint64_t FakeRun::push(std::optional<size_t> probe)
{
    Stack& own = stack();
    if (own.frames.size() + 2 > stack_words / frame_words)
        throw std::length_error("too many nested calls");
    uint64_t* const top = &own.words->at(stack_words - frame_words * (own.frames.size() + 1));
    std::fill_n(top, frame_words / 2, 0xaaaaaaaaaaaaaaaa);
    *top = return_addresses + (probe ? *probe + 1 : 0) * 256 + own.frames.size(); // each function has its own callers
    own.frames.push_back({probe, reinterpret_cast<uint64_t>(top), *top});
    return own.frames.back().sp;
}

void FakeRun::run(std::optional<size_t> probe, std::string_view suffix)
{
    if (!probe)
        return;
    for (size_t i = plan_.hooks.size(); i--;) { // like the kernel, which runs the program attached last first
        const Hook& hook = plan_.hooks[i];
        if (std::ranges::find(hook.probes, *probe) == hook.probes.end() || !hook.always ||
            (suffix == "return" && !hook.returns))
            continue;
        const std::string name = fmt::format("{}_{}", hook.program, suffix);
        const bpf_program* const program = bpf_object__find_program_by_name(tool_->opened().object, name.c_str());
        hit_->cookie = uint64_t{file_word_} << COOKIE_WORD_SHIFT | uint64_t{i} << COOKIE_HOOK_SHIFT | (*probe + 1);
        LIBBPF_OPTS(bpf_test_run_opts, options);
        if (const int error = bpf_prog_test_run_opts(bpf_program__fd(program), &options))
            throw std::runtime_error(fmt::format("cannot run {}: {}", name, errno_text(-error)));
    }
}

void FakeRun::enter(std::string_view symbol, const Arguments& arguments)
{
    const std::optional<size_t> number = index_of(symbol);
    const uint64_t sp = push(number);
    if (!number)
        return;
    const probe_row& row = plan_.probes[*number].row;
    uint64_t* const registers = hit_->registers;
    std::fill_n(registers, std::size(hit_->registers), 0xbbbbbbbbbbbbbbbb);
    uint64_t* block = row.block_base == BLOCK_STACK ? reinterpret_cast<uint64_t*>(sp) + 1 : nullptr;
    if (row.block_base >= BLOCK_REGISTER) {
        block = memory({});
        registers[argument_registers[row.block_base - BLOCK_REGISTER]] =
            block_is_broken_ ? unreadable : reinterpret_cast<uint64_t>(block);
        block_is_broken_ = false;
    }
    for (const auto& [which, value] : arguments) {
        const operand& at = row.args[which];
        if (!operand_present(at.word))
            throw std::invalid_argument(fmt::format("{} has no argument {}", symbol, static_cast<int>(which)));
        uint64_t& word =
            at.word < ARGUMENT_REGISTERS ? registers[argument_registers[at.word]] : block[at.word - WORD_BLOCK];
        store(word, at.part, value);
    }
    registers[SP] = sp;
    registers[IP] = function_address;
    run(number, "entry");
}

void FakeRun::enter(const Probe& probe, const abi::Call& compiled)
{
    const auto number = static_cast<size_t>(&probe - plan_.probes.data());
    const uint64_t sp = push(number);
    uint64_t* const registers = hit_->registers;
    std::fill_n(registers, std::size(hit_->registers), 0);
    for (size_t i = 0; i < std::size(argument_registers); i++)
        registers[argument_registers[i]] = compiled.captured.registers[i];
    // the captured words begin with the return address
    std::copy_n(compiled.captured.stack + 1, std::size(compiled.captured.stack) - 1,
                reinterpret_cast<uint64_t*>(sp) + 1);
    registers[SP] = sp;
    registers[IP] = function_address;
    run(number, "entry");
}

void FakeRun::leave(uint64_t result)
{
    Stack& own = stack();
    const Frame frame = own.frames.back();
    own.frames.pop_back();
    hit_->registers[AX] = result;
    hit_->registers[SP] = frame.sp + 8;
    hit_->registers[IP] = frame.return_address;
    run(frame.probe, "return");
}

void FakeRun::jump_out()
{
    stack().frames.pop_back();
}

void FakeRun::leave_unseen(std::string_view symbol, uint64_t result)
{
    push(index_of(symbol));
    leave(result);
}

void FakeRun::call(std::string_view symbol, const Arguments& arguments, uint64_t result)
{
    enter(symbol, arguments);
    leave(result);
}

void FakeRun::call(const Probe& probe, const abi::Call& compiled, uint64_t result)
{
    enter(probe, compiled);
    leave(result);
}

uint64_t* FakeRun::memory(std::initializer_list<uint64_t> words)
{
    std::vector<uint64_t>& block = memory_.emplace_back(words);
    block.resize(std::max<size_t>(block.size(), BLOCK_WORDS_MAX));
    return block.data();
}

uint64_t FakeRun::text(std::string_view string)
{
    return reinterpret_cast<uint64_t>(texts_.emplace_back(string).c_str());
}

void FakeRun::print(Output& output)
{
    output_ = &output;
    ring_->drain(10s);
    tool_->tick(output);
    if (run_plan_.hooks.before_print)
        run_plan_.hooks.before_print();
    ring_->drain(10s);
    tool_->print(output, captured::ten_o_clock, 1'000'000'000);
    if (run_plan_.hooks.after_print)
        run_plan_.hooks.after_print(output);
    output_ = nullptr;
}

std::vector<json> FakeRun::report()
{
    std::vector<json> records = captured::json_of([this](Output& output) { print(output); });
    std::erase_if(records, [](const json& record) {
        return record["type"] != "row" && record["type"] != "event" && record["type"] != "hist";
    });
    return records;
}

std::string FakeRun::report_in_text()
{
    return captured::text_of([this](Output& output) { print(output); });
}

FakeRun& shared_run(const std::string& words)
{
    static auto& runs = *new std::map<std::string, std::unique_ptr<FakeRun>>; // exists until the process exits
    std::unique_ptr<FakeRun>& run = runs[words];
    if (run) {
        run->report();
        run->losses();
        run->set_runtime(any_runtime);
    } else {
        run = std::make_unique<FakeRun>(words);
    }
    return *run;
}

std::map<std::string, uint64_t> FakeRun::losses()
{
    if (run_plan_.hooks.names_lost)
        losses_->add(LOSS_NAME, run_plan_.hooks.names_lost());
    std::map<std::string, uint64_t> all;
    for (const Loss& loss : losses_->since_last())
        all.emplace(loss.key, loss.count);
    return all;
}

} // namespace gpusnoop
