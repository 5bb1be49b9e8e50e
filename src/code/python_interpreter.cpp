// SPDX-License-Identifier: Apache-2.0
#include "code/python_interpreter.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "code/elf.hpp"
#include "code/elf_image.hpp"
#include "code/python_layout.hpp"
#include "proc/mapped_file.hpp"
#include "proc/process.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

namespace gpusnoop {

namespace {

// Limits against hostile processes. Real processes have a few interpreters and some hundred threads.
constexpr unsigned interpreters_max = 64;
constexpr unsigned threads_max = 1024;
constexpr size_t keys = 32;           // pthread keys in the first block of glibc's struct pthread
constexpr size_t runtime_head = 1024; // bytes of _PyRuntime that contain _Py_DebugOffsets
constexpr unsigned max_minor = 99;
constexpr uint64_t function_max = 64;   // maximum bytes of a function that only loads a word
constexpr uint64_t runtime_max = 16384; // bytes of _PyRuntime that may contain the pthread key of the thread state

// Returns the minor version in a file name such as "libpython3.10.so.1.0" or "python3.10".
std::optional<unsigned> minor_of_name(std::string_view path)
{
    const std::string_view name = base_name(path);
    constexpr std::string_view python = "python3.";
    const size_t at = name.find(python);
    if (at == std::string_view::npos)
        return std::nullopt;
    const auto minor = leading_number<unsigned>(name.substr(at + python.size()));
    return minor && *minor <= max_minor ? minor : std::nullopt;
}

struct Runtime {
    uint64_t address = 0;
    PythonCodeRange code, loop, get_state;
    std::optional<unsigned> minor;
};

// Returns nullopt if the file contains no interpreter.
std::optional<Runtime> runtime_in(pid_t pid, const Mapping& mapping)
{
    Fd file = open_mapped(pid, mapping);
    if (!file)
        return std::nullopt;
    const Elf elf(std::move(file));
    std::optional<Part> runtime = elf.object("_PyRuntime");
    if (!runtime)
        runtime = elf.section(".PyRuntime"); // exists in stripped files, too (3.10 and later)
    const auto bias = load_bias(elf.segments(), mapping, mapping.start);
    if (!runtime || !bias)
        return std::nullopt;
    Runtime found{.address = runtime->address + *bias,
                  .code = {mapping.start, mapping.end},
                  .loop = {},
                  .get_state = {},
                  .minor = minor_of_name(mapping.path)};
    constexpr std::string_view functions[] = {"_PyEval_EvalFrameDefault", "PyGILState_GetThisThreadState"};
    for (const Symbol& function : elf.functions(functions))
        (function.name == functions[0] ? found.loop : found.get_state) =
            PythonCodeRange{function.address + *bias, function.address + function.size + *bias};
    uint32_t hex = 0; // Py_Version exists from 3.11 on
    if (const auto version = elf.object("Py_Version");
        version && read_memory(pid, version->address + *bias, &hex, sizeof(hex)) && hex >> 24 == 3)
        found.minor = hex >> 16 & 0xff;
    return found;
}

// Searches the program first, then libpython. A program that uses libpython contains no runtime itself.
std::optional<Runtime> find_runtime(pid_t pid)
{
    const std::vector<Mapping> code = code_mappings(pid);
    for (const Mapping& mapping : code) {
        const bool is_program = &mapping == code.data();
        if (mapping.vdso || (!is_program && !base_name(mapping.path).starts_with("libpython3.")))
            continue;
        try {
            if (auto runtime = runtime_in(pid, mapping))
                return runtime;
        } catch (const Error&) { // not a usable ELF file
        }
    }
    return std::nullopt;
}

// A thread in the runtime's list of threads.
struct KnownThread {
    uint64_t self, state; // pthread_self() and the address of its PyThreadState
};

// Returns the pthread keys that this code may read from the runtime. The code may contain the address of a Py_tss_t
// (which consists of the number 1 and the key) or the address of the key in it.
std::array<bool, keys> keys_read_by(const Code& code, uint64_t runtime, const ThreadStorage& storage,
                                    const ReadMemory& read)
{
    std::array<bool, keys> found{};
    const auto check = [&](uint64_t address) {
        std::array<uint32_t, 2> key{};
        if (address - runtime < runtime_max && read(address, key.data(), sizeof(key)) && key[0] == 1 && key[1] < keys)
            found[key[1]] = true;
    };
    storage.places(code, runtime, [&](uint64_t address) {
        check(address);
        check(address - sizeof(uint32_t));
    });
    return found;
}

// Finds the pthread key that holds the thread state. Returns the offset of the key's slot from pthread_self().
std::optional<int32_t> slot_of_key(std::span<const KnownThread> threads, const Code& get_state, uint64_t runtime,
                                   const ThreadStorage& storage, const ReadMemory& read)
{
    std::array<size_t, keys> votes{};
    for (const KnownThread& thread : threads) {
        struct Slot {
            uint64_t sequence, value;
        };
        std::array<Slot, keys> slots{};
        if (thread.self && read(thread.self + storage.first_block, slots.data(), sizeof(slots)))
            for (size_t key = 0; key < keys; key++)
                votes[key] += slots[key].value == thread.state;
    }
    if (std::ranges::count_if(votes, [](size_t count) { return count != 0; }) > 1) {
        const std::array<bool, keys> read_by_code = keys_read_by(get_state, runtime, storage, read);
        for (size_t key = 0; key < keys; key++)
            votes[key] *= read_by_code[key] ? threads.size() + 1 : 1; // gives these keys precedence
    }
    const auto most = std::ranges::max_element(votes);
    if (*most == 0 || std::ranges::count(votes, *most) > 1)
        return std::nullopt;
    const auto key = static_cast<uint64_t>(most - votes.begin());
    return static_cast<int32_t>(storage.first_block + key * 2 * sizeof(uint64_t) + sizeof(uint64_t));
}

// Returns the offset, from the thread pointer, of the variable that holds the thread state. It is enough if half of the
// threads have their state there, because starting and exiting threads may have none.
std::optional<int32_t> slot_of_variable(std::span<const KnownThread> threads, const Code& get_state,
                                        const ThreadStorage& storage, uint64_t self, const ReadMemory& read)
{
    const auto slot = storage.returned_variable(get_state);
    if (!slot)
        return std::nullopt;
    const auto agreed = std::ranges::count_if(threads, [&](const KnownThread& thread) {
        uint64_t value = 0;
        return read(thread.self + self + static_cast<uint64_t>(int64_t{*slot}), &value, sizeof(value)) &&
               value == thread.state;
    });
    return agreed > 0 && 2 * static_cast<size_t>(agreed) >= threads.size() ? slot : std::nullopt;
}

// Returns the offset from pthread_self() to the thread pointer, found in the code of pthread_self(). Before glibc 2.34,
// that code is in libpthread, and the pthread_self() in libc only forwards the call.
std::optional<uint16_t> find_self(pid_t pid)
{
    if (!host_storage().thread_pointer)
        return 0;
    constexpr std::string_view names[] = {"pthread_self"};
    constexpr size_t longest = 64;
    const std::vector<Mapping> code = code_mappings(pid);
    for (const Mapping& mapping : code) {
        const std::string_view name = base_name(mapping.path);
        const bool is_program = &mapping == code.data();
        if (mapping.vdso || (!is_program && !name.starts_with("libc.so") && !name.starts_with("libc-") &&
                             !name.starts_with("libpthread")))
            continue;
        try {
            Fd file = open_mapped(pid, mapping);
            if (!file)
                continue;
            const Elf elf(std::move(file));
            for (const Symbol& function : elf.functions(names)) {
                const std::vector<uint8_t> bytes =
                    elf.bytes(function.file_offset, std::min<size_t>(function.size, longest));
                const auto self = host_storage().thread_pointer({bytes, function.address});
                if (self && *self <= UINT16_MAX)
                    return static_cast<uint16_t>(*self);
            }
        } catch (const Error&) { // not a usable ELF file
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<int32_t> find_state_slot(const PythonVersion& version, uint64_t runtime, const Code& get_state,
                                       const ThreadStorage& storage, uint64_t self, const ReadMemory& read)
{
    std::vector<KnownThread> threads;
    const auto word = [&](uint64_t address) {
        uint64_t value = 0;
        return read(address, &value, sizeof(value)) ? value : 0;
    };
    uint64_t interpreter = word(runtime + version.interpreters);
    for (unsigned i = 0; interpreter && i < interpreters_max; i++) {
        for (uint64_t state = word(interpreter + version.threads); state && threads.size() < threads_max;) {
            threads.push_back({word(state + version.layout.thread_id), state});
            state = word(state + version.next_thread);
        }
        interpreter = word(interpreter + version.next_interpreter);
    }
    if (version.in_variable)
        return slot_of_variable(threads, get_state, storage, self, read);
    const auto slot = slot_of_key(threads, get_state, runtime, storage, read);
    return slot ? std::optional(*slot - static_cast<int32_t>(self)) : std::nullopt;
}

namespace {

std::string unsupported(unsigned minor)
{
    return fmt::format("Python 3.{} is not supported (3.{} to 3.{} are)", minor, PythonVersion::first,
                       PythonVersion::last);
}

} // namespace

PythonInterpreter find_interpreter(pid_t pid)
{
    const auto runtime = find_runtime(pid);
    if (!runtime)
        return {};
    std::vector<uint8_t> head(runtime_head);
    if (!read_memory(pid, runtime->address, head.data(), head.size()))
        return {.refused = "its memory cannot be read"};
    std::optional<PythonVersion> version;
    if (const auto offsets = debug_offsets(head)) {
        if (offsets->free_threaded)
            return {.refused = fmt::format("free-threaded Python (3.{}t) is not supported", offsets->version.minor)};
        version = offsets->version.layout.minor ? std::optional(offsets->version) : std::nullopt;
        if (!version)
            return {.refused = unsupported(offsets->version.minor)};
    } else if (runtime->minor) {
        version = python_version(*runtime->minor);
        if (!version || *runtime->minor > 12) // from 3.13 on, debug offsets are required
            return {.refused = unsupported(*runtime->minor)};
    } else {
        return {.refused = "cannot determine its Python version"};
    }
    std::vector<uint8_t> get_state(std::min(runtime->get_state.end - runtime->get_state.start, function_max));
    if (!read_memory(pid, runtime->get_state.start, get_state.data(), get_state.size()))
        get_state.clear();
    const auto self = find_self(pid);
    if (!self)
        return {.refused = "cannot find the thread-local storage of its C library"};
    const auto slot =
        find_state_slot(*version, runtime->address, {get_state, runtime->get_state.start}, host_storage(), *self,
                        [pid](uint64_t address, void* to, size_t size) { return read_memory(pid, address, to, size); });
    if (!slot)
        return {.refused = fmt::format("cannot find the thread states of Python 3.{}", version->minor)};
    version->layout.slot = *slot;
    version->layout.self = *self;
    version->layout.start_ns = start_time_ns(pid);
    return {.layout = version->layout, .code = runtime->code, .loop = runtime->loop};
}

namespace {

PythonInterpreter find_or_explain(pid_t pid)
{
    try {
        return find_interpreter(pid);
    } catch (const std::bad_alloc&) {
        return {.refused = "out of memory while reading its files"};
    } catch (const Error& e) {
        return {.refused = e.what()};
    }
}

} // namespace

void serve_python_search(Helper::Task& task)
{
    answer_each<PythonQuestion>(task, [&](const PythonQuestion& question) {
        task.set_status(fmt::format("the Python interpreter of process {}", question.pid));
        const PythonInterpreter found = find_or_explain(static_cast<pid_t>(question.pid));
        PythonAnswer answer{.pid = question.pid,
                            .code_start = found.code.start,
                            .code_end = found.code.end,
                            .loop_start = found.loop.start,
                            .loop_end = found.loop.end,
                            .refused = found.refused};
        if (found.layout)
            answer.layout.assign(reinterpret_cast<const char*>(&*found.layout), sizeof(*found.layout));
        return answer;
    });
}

} // namespace gpusnoop
