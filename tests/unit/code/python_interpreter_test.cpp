// SPDX-License-Identifier: Apache-2.0
// Simulated interpreters: thread lists and _Py_DebugOffsets.
#include "code/python_interpreter.hpp"
#include "code/python_layout.hpp"
#include "tests/unit/code/words_of_arm64.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <map>
#include <unistd.h>
#include <vector>

using namespace gpusnoop;

namespace {

// Simulated memory; other addresses are unreadable.
struct Memory {
    std::map<uint64_t, uint64_t> words;

    bool read(uint64_t address, void* to, size_t size) const
    {
        for (size_t i = 0; i < size; i += 8) {
            const auto word = words.find(address + i);
            if (word == words.end())
                return false;
            memcpy(static_cast<char*>(to) + i, &word->second, 8);
        }
        return true;
    }
    std::optional<int32_t> slot(const PythonVersion& version) const
    {
        return find_state_slot(version, runtime, {get_state, code}, storage, self,
                               [this](uint64_t address, void* to, size_t size) { return read(address, to, size); });
    }
    ThreadStorage storage = storage_on_x86_64;
    uint64_t self = 0;
    // endbr64; mov %fs:-0x28,%rax; ret
    std::vector<uint8_t> get_state = {0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b,
                                      0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3};

    // Adds a thread: `key` holds its state, all other keys hold `others`.
    void add_thread(const PythonVersion& version, uint64_t state, uint64_t thread, uint64_t next, size_t key,
                    uint64_t others = 0)
    {
        words[state + version.layout.thread_id] = thread;
        words[state + version.next_thread] = next;
        for (size_t i = 0; i < 32; i++) {
            words[thread + storage.first_block + 16 * i] = 1;
            words[thread + storage.first_block + 16 * i + 8] = i == key ? state : others;
        }
    }
    static constexpr uint64_t runtime = 0x10000, interpreter = 0x20000, code = 0x8000;
    // The interpreter's list of threads begins with 0x30000.
    void add_interpreter(const PythonVersion& version)
    {
        words[runtime + version.interpreters] = interpreter;
        words[interpreter + version.next_interpreter] = 0;
        words[interpreter + version.threads] = 0x30000;
    }
    // Two threads, whose states are held by key 3.
    void add_two_threads(const PythonVersion& version, uint64_t others_of_first = 0)
    {
        add_interpreter(version);
        add_thread(version, 0x30000, 0x50000, 0x40000, 3, others_of_first);
        add_thread(version, 0x40000, 0x60000, 0, 3);
    }
    // pybind11 keeps the states in another key, too.
    void copy_to_key_5()
    {
        for (const uint64_t thread : {0x50000, 0x60000})
            words[thread + storage.first_block + 16 * 5 + 8] = words[thread + storage.first_block + 16 * 3 + 8];
    }
};

constexpr int32_t offset_of_key(int key)
{
    return 0x310 + 16 * key + 8;
}

std::vector<uint8_t> head_of(uint64_t version, uint64_t free_threaded)
{
    std::vector<uint8_t> head(1024, 8);
    memcpy(head.data(), "xdebugpy", 8);
    memcpy(head.data() + 8, &version, 8);
    memcpy(head.data() + 16, &free_threaded, 8);
    for (size_t at = 24; at + 8 <= head.size(); at += 8) {
        const uint64_t offset = at / 8;
        memcpy(head.data() + at, &offset, 8);
    }
    return head;
}

} // namespace

TEST_CASE("the thread-local key of the interpreter is the one that holds, in every thread, that thread's state")
{
    for (unsigned minor = PythonVersion::first; minor <= 14; minor++) {
        const PythonVersion version = *python_version(minor);
        Memory memory;
        memory.add_two_threads(version, 0x30000); // all keys of the first thread hold its state
        CHECK(memory.slot(version) == offset_of_key(3));
    }
}

TEST_CASE("no key is used if none or several match")
{
    const PythonVersion version = *python_version(11);
    Memory memory;
    CHECK_FALSE(memory.slot(version)); // no memory is readable
    memory.add_interpreter(version);
    memory.add_thread(version, 0x30000, 0x50000, 0, 3, 0x30000);
    CHECK_FALSE(memory.slot(version));
    memory.add_thread(version, 0x30000, 0x50000, 0, 99);
    CHECK_FALSE(memory.slot(version));
}

TEST_CASE("if two pthread keys hold the thread states, the key in the interpreter's code is used")
{
    const PythonVersion version = *python_version(11);
    Memory memory;
    memory.add_two_threads(version);
    memory.copy_to_key_5();
    CHECK_FALSE(memory.slot(version));
    memory.get_state = {0x48, 0x8d, 0xb8, 0x50, 0x02, 0, 0, 0xe9, 0, 0, 0, 0}; // lea 0x250(%rax),%rdi; jmp
    CHECK_FALSE(memory.slot(version));                                         // the runtime contains no key
    for (const int key : {3, 5}) {
        memory.words[Memory::runtime + 0x250] = static_cast<uint64_t>(key) << 32 | 1;
        CHECK(memory.slot(version) == offset_of_key(key));
    }
    memory.words[Memory::runtime + 0x250] = uint64_t{3} << 32; // the key is not created yet
    CHECK_FALSE(memory.slot(version));
    memory.words[Memory::runtime + 0x250] = uint64_t{4} << 32 | 1; // this key holds no states
    CHECK_FALSE(memory.slot(version));
    // mov OFFSET(%rip),%edi; jmp: in an executable
    constexpr uint32_t offset = Memory::runtime + 0x254 - (Memory::code + 6);
    memory.get_state = {0x8b, 0x3d, offset & 0xff, offset >> 8 & 0xff, offset >> 16, 0, 0xe9, 0, 0, 0, 0};
    memory.words[Memory::runtime + 0x250] = uint64_t{3} << 32 | 1;
    CHECK(memory.slot(version) == offset_of_key(3));
}

TEST_CASE("arm64: struct pthread lies before the thread pointer")
{
    constexpr int32_t block = 0x110 - 0x740;
    PythonVersion version = *python_version(11);
    Memory memory{.words = {}, .storage = storage_on_arm64, .self = 0x740};
    memory.add_two_threads(version);
    CHECK(memory.slot(version) == block + 16 * 3 + 8);
    memory.copy_to_key_5();
    CHECK_FALSE(memory.slot(version));
    // adrp x0, _PyRuntime; ldr w0, [x0, #0x254]; b
    memory.get_state = bytes_of({0x90000040, 0xb9425400, 0x14000000});
    for (const int key : {3, 5}) {
        memory.words[Memory::runtime + 0x250] = static_cast<uint64_t>(key) << 32 | 1;
        CHECK(memory.slot(version) == block + 16 * key + 8);
    }

    version = *python_version(15);
    Memory variable{.words = {}, .storage = storage_on_arm64, .self = 0x740};
    variable.add_interpreter(version);
    variable.add_thread(version, 0x30000, 0x50000, 0, 3);
    // mrs x0, tpidr_el0; add x0, x0, #0x20; ldr x0, [x0]; ret
    variable.get_state = bytes_of({0xd53bd040, 0x91008000, 0xf9400000, 0xd65f03c0});
    variable.words[0x50000 + 0x20] = 0x30000;
    CHECK_FALSE(variable.slot(version));
    variable.words[0x50000 + 0x740 + 0x20] = 0x30000;
    CHECK(variable.slot(version) == 0x20);
}

TEST_CASE("3.15: the state is in the variable that the interpreter's code loads")
{
    const PythonVersion version = *python_version(15);
    Memory memory;
    memory.add_interpreter(version);
    memory.add_thread(version, 0x30000, 0x50000, 0x40000, 3);
    memory.add_thread(version, 0x40000, 0x60000, 0x70000, 3);
    memory.add_thread(version, 0x70000, 0x80000, 0, 3); // a thread that is starting
    CHECK_FALSE(memory.slot(version));
    memory.words[0x50000 - 0x28] = 0x30000;
    CHECK_FALSE(memory.slot(version)); // most threads have another value in this variable
    memory.words[0x60000 - 0x28] = 0x40000;
    CHECK(memory.slot(version) == -0x28);
    for (size_t cut = 1; cut <= 5; cut++) { // removes the ret, then bytes of the offset
        memory.get_state.pop_back();
        CHECK(memory.slot(version).has_value() == (cut == 1));
    }
    memory.get_state = {0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0}; // lea; call __tls_get_addr: in a library
    CHECK_FALSE(memory.slot(version));
    memory.get_state.clear();
    CHECK_FALSE(memory.slot(version));
}

TEST_CASE("endless thread lists are abandoned")
{
    const PythonVersion version = *python_version(13);
    Memory memory;
    memory.add_interpreter(version);
    memory.words[Memory::interpreter + version.next_interpreter] = Memory::interpreter;
    memory.add_thread(version, 0x30000, 0x50000, 0x30000, 0);
    CHECK(memory.slot(version) == offset_of_key(0));
}

TEST_CASE("offsets are read from _Py_DebugOffsets, also of free-threaded builds and unknown versions")
{
    const auto offsets = debug_offsets(head_of(0x030d00f0, 0));
    REQUIRE(offsets);
    CHECK_FALSE(offsets->free_threaded);
    CHECK(offsets->version.minor == 13);
    CHECK(offsets->version.interpreters == 40 / 8);
    CHECK(offsets->version.layout.frame == 184 / 8);
    CHECK(offsets->version.layout.file == 280 / 8);
    CHECK(offsets->version.layout.text_other == 560 / 8 + 16);
    CHECK(debug_offsets(head_of(0x030d00f0, 1))->free_threaded);
    const auto newer = debug_offsets(head_of(0x031000f0, 0));
    CHECK(newer->version.minor == 16);
    CHECK(newer->version.layout.minor == 0);
}

TEST_CASE("impossible offsets are refused")
{
    std::vector<uint8_t> head = head_of(0x030d00f0, 0);
    const uint64_t far = 1 << 20;
    memcpy(head.data() + 184, &far, 8);
    CHECK_FALSE(debug_offsets(head));
    head = head_of(0x030d00f0, 0);
    const uint64_t none = PYTHON_NONE; // a reserved value, which means that there is no such field
    memcpy(head.data() + 264, &none, 8);
    CHECK_FALSE(debug_offsets(head));
    CHECK_FALSE(debug_offsets(std::vector<uint8_t>(7, 'x')));
    head[0] = 'y';
    CHECK_FALSE(debug_offsets(head));
}

TEST_CASE("a process without Python has no interpreter")
{
    const PythonInterpreter found = find_interpreter(getpid());
    CHECK_FALSE(found.layout);
    CHECK(found.refused.empty());
}
