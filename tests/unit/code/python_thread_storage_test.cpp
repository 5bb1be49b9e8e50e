// SPDX-License-Identifier: Apache-2.0
// Thread-local storage of this system's glibc, and code of Debian's Pythons for arm64.
#include "code/python_layout.hpp"

#include "tests/unit/code/words_of_arm64.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <pthread.h>
#include <set>
#include <span>
#include <vector>

using namespace gpusnoop;

namespace {

std::set<uint64_t> places(const Code32& words, uint64_t address, uint64_t object)
{
    std::set<uint64_t> found;
    storage_on_arm64.places({bytes_of(words), address}, object, [&](uint64_t place) { found.insert(place); });
    return found;
}

std::optional<uint64_t> thread_pointer(const Code32& words)
{
    return storage_on_arm64.thread_pointer({bytes_of(words), 0x85980});
}

std::optional<int32_t> variable(const Code32& words)
{
    return storage_on_arm64.returned_variable({bytes_of(words), 0x428e58});
}

// PyGILState_GetThisThreadState() of 3.15
const Code32 of_3_15{
    0xd503245f, // bti c
    0xd53bd040, // mrs x0, tpidr_el0
    0xd503233f, // paciasp
    0xa9bf7bfd, // stp x29, x30, [sp, #-16]!
    0x91400000, // add x0, x0, #0x0, lsl #12
    0x91008000, // add x0, x0, #0x20
    0x910003fd, // mov x29, sp
    0xa8c17bfd, // ldp x29, x30, [sp], #16
    0xd50323bf, // autiasp
    0xf9400000, // ldr x0, [x0]
    0xd65f03c0, // ret
};

} // namespace

TEST_CASE("the first block of thread-specific data is at its known offset", "[python]")
{
    pthread_key_t key = 0;
    REQUIRE(pthread_key_create(&key, nullptr) == 0);
    if (key < 32) {
        int value = 0;
        pthread_setspecific(key, &value);
        const auto* const self = reinterpret_cast<const char*>(pthread_self());
        const void* held = nullptr;
        memcpy(&held, self + host_storage().first_block + 16 * key + 8, sizeof(held));
        CHECK(held == &value);
    }
    pthread_key_delete(key);
#if defined(__aarch64__)
    const auto* const code = reinterpret_cast<const uint8_t*>(&pthread_self);
    const auto size = storage_on_arm64.thread_pointer({std::span(code, 32), reinterpret_cast<uint64_t>(code)});
    REQUIRE(size);
    CHECK(pthread_self() + *size == reinterpret_cast<uint64_t>(__builtin_thread_pointer()));
#endif
}

TEST_CASE("the offset of the thread pointer is read from pthread_self()", "[python]")
{
    CHECK(thread_pointer({0xd53bd040, 0xd11d0000, 0xd65f03c0}) == 0x740); // 2.36
    CHECK(thread_pointer({0xd503245f, 0xd53bd041, 0xd1400420, 0xd1004000, 0xd65f03c0}) == 0x1010);
    CHECK_FALSE(thread_pointer({0xd53bd040, 0xd11d0000}));             // no return
    CHECK_FALSE(thread_pointer({0xd11d0000, 0xd65f03c0}));             // not the thread pointer
    CHECK_FALSE(thread_pointer({0x90000010, 0xf9400210, 0xd61f0200})); // adrp; ldr; br: PLT stub, before glibc 2.34
    CHECK_FALSE(thread_pointer({0xd53bd041, 0xd11d0021, 0xd65f03c0})); // another register
    CHECK_FALSE(thread_pointer({}));
}

TEST_CASE("arm64: addresses that code may read are found", "[python]")
{
    // 3.11: autoTSSkey is at offset 608 of the runtime's state, and its key is at offset 612.
    CHECK(places({0xb0002e20, 0x91002000, 0xf9412c01, 0xb4000061, 0xb9426400, 0x17feba0e}, 0x471314, 0) ==
          std::set<uint64_t>{0, 0xa36000, 0xa36008, 0xa36008 + 600, 0xa36008 + 612});
    // 3.11 as a library: the runtime's address is loaded from the GOT.
    CHECK(places({0xb0001bc0, 0xf9466000, 0xf9412c01, 0xb4000061, 0x91098000, 0x140039c6}, 0x2a6a54, 0x700000) ==
          std::set<uint64_t>{0x61f000, 0x61f000 + 3264, 0x700000, 0x700000 + 600, 0x700000 + 608});
    // 3.14
    CHECK(places({0xd503245f, 0xb0003920, 0xb945c800, 0x34000080, 0xb0003920, 0x91172000, 0x14023e5b}, 0x42541c, 0) ==
          std::set<uint64_t>{0xb4a000, 0xb4a5c8});
    CHECK(places({0xf9412c01, 0xb9426400}, 0x471314, 0x700000).empty());
}

TEST_CASE("x86-64: addresses that code may read are found", "[python]")
{
    const std::vector<uint8_t> bytes{0xbf, 0xd0, 0xf1, 0x85, 0x00, 0x8b, 0x3d, 0x50, 0x3d, 0x56, 0x00};
    std::set<uint64_t> found;
    storage_on_x86_64.places({bytes, 0x4f7c3e}, 0x700000, [&](uint64_t place) { found.insert(place); });
    CHECK(found.contains(0x85f1d0));                      // mov $0x85f1d0, %edi
    CHECK(found.contains(0x4f7c3e + 11 + 0x563d50));      // mov 0x563d50(%rip), %edi
    CHECK(found.contains(uint64_t{0x700000} + 0x563d50)); // mov 0x563d50(%rax), %edi
}

TEST_CASE("arm64: the offset of a thread-local variable is read from the code that returns it", "[python]")
{
    CHECK(variable(of_3_15) == 0x20);
    CHECK(variable(with(with(of_3_15, 4, 0x91400400), 9, 0xf9400400)) == 0x1028);
    CHECK_FALSE(variable(with(of_3_15, 1, 0xd503201f)));       // no thread pointer
    CHECK_FALSE(variable(with(of_3_15, 5, 0xd2800000)));       // mov x0, #0
    CHECK_FALSE(variable(with(of_3_15, 9, 0xd503201f)));       // returns the address
    CHECK_FALSE(variable(with(of_3_15, 9, 0xf9400001)));       // ldr x1, [x0]
    CHECK_FALSE(variable(with(of_3_15, 6, 0xd63f0040)));       // blr x2: in a library
    CHECK_FALSE(variable(first(of_3_15, of_3_15.size() - 1))); // no return
}
