// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

// Functions of the sanitizers. GCC has no header for them.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, size_t),
                                                         void (*freed)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* memory);

namespace {

// Limits per input, including the sanitizers' overhead. CPU time is limited, not wall-clock time, which varies on a
// busy machine.
constexpr double max_cpu_seconds = 2;
constexpr int64_t max_bytes = 256 << 20;

int64_t bytes_held = 0;
int64_t bytes_before = 0;

void allocated(const volatile void*, size_t size)
{
    bytes_held += static_cast<int64_t>(size);
    gpusnoop::expect(bytes_held - bytes_before <= max_bytes, "an input uses at most 256 MiB");
}

void freed(const volatile void* memory)
{
    if (memory)
        bytes_held -= static_cast<int64_t>(__sanitizer_get_allocated_size(memory));
}

std::map<std::string_view, void (*)(std::string_view)>& targets()
{
    static std::map<std::string_view, void (*)(std::string_view)> all;
    return all;
}

// The target that the environment variable FUZZ_TARGET names.
auto chosen_target()
{
    const char* name = getenv("FUZZ_TARGET");
    const auto found = targets().find(name ? name : "");
    gpusnoop::expect(found != targets().end(), "FUZZ_TARGET names a target");
    return found->second;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static const int hooked = __sanitizer_install_malloc_and_free_hooks(allocated, freed);
    static const auto fuzz = chosen_target();
    gpusnoop::expect(hooked > 0, "allocation hooks are installed");
    bytes_before = bytes_held;
    const std::clock_t start = std::clock();
    fuzz({reinterpret_cast<const char*>(data), size});
    gpusnoop::expect(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < max_cpu_seconds,
                     "an input uses less than 2 seconds of CPU time");
    return 0;
}

namespace gpusnoop {

bool add_target(const char* name, void (*fuzz)(std::string_view))
{
    return targets().emplace(name, fuzz).second;
}

void expect(bool holds, const char* invariant)
{
    if (holds)
        return;
    fprintf(stderr, "ERROR: not true: %s\n", invariant);
    abort();
}

Fd file_with(std::string_view content)
{
    Fd file(memfd_create("fuzzed", MFD_CLOEXEC));
    expect(pwrite(file.get(), content.data(), content.size(), 0) == std::ssize(content), "memfd can be written");
    return file;
}

Folder::Folder()
{
    std::string name = (std::filesystem::temp_directory_path() / "gpusnoop-fuzz-XXXXXX").string();
    expect(mkdtemp(name.data()), "temporary folder can be created");
    path_ = name;
}

Folder::~Folder()
{
    std::error_code error;
    std::filesystem::remove_all(path_, error);
}

void Folder::write(const std::string& name, std::string_view content) const
{
    const std::filesystem::path path = path_ + '/' + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
}

} // namespace gpusnoop
