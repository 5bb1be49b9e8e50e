// SPDX-License-Identifier: Apache-2.0
// Names of kernels and functions.
#include "base/error.hpp"
#include "names/demangle.hpp"
#include "names/kernel_names.hpp"
#include "names/kernel_text.hpp"
#include "names/registration_scan.hpp"
#include "names/scan_cache.hpp"
#include "names/user_symbols.hpp"
#include "reader/reader.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace gpusnoop;

namespace {

bool is_control(char c)
{
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

size_t columns(std::string_view text)
{
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

void serve(Helper::Task& task)
{
    while (const auto message = task.connection.receive())
        if (!task.connection.send(demangle(message->bytes)))
            return;
}

// nullopt if the helper hangs or crashes.
std::optional<std::string> readable(std::string_view name)
{
    static std::optional<std::string> answer;
    static Reader helper({.sandbox = process_reading_sandbox(256 << 20), .serve = serve, .apply = [](Message message) {
                              answer = std::move(message.bytes);
                              return true;
                          }});
    answer.reset();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const bool posted = helper.post(0, name); // false for one second after a helper hung or crashed
    expect(!posted || helper.wait_until(deadline), "the helper answers, or is replaced");
    return std::exchange(answer, std::nullopt);
}

} // namespace

// Demangling of untrusted kernel and function names, in a helper with limits.
TARGET(demangle)
{
    const bool plain = std::ranges::none_of(input, is_control);
    const std::string name = input.empty() ? std::string() : readable(input).value_or(std::string(input));
    expect(name.size() <= std::max(readable_max, input.size()), "names are bounded");
    expect(input.empty() || !name.empty(), "a name does not become empty");
    expect(may_be_mangled(input) || name == input, "names that are not mangled do not change");
    for (const size_t width : {1, 8, 24, 40, 100}) {
        const std::string cut = shorten_kernel(name, width);
        expect(columns(cut) <= width, "a name fits in its column");
        expect(!plain || std::ranges::none_of(cut, is_control), "no control characters are added");
    }
    expect(base_of_kernel(name).size() <= name.size(), "the base name is no longer than the name");
    expect(!plain || std::ranges::none_of(name, is_control), "no control characters are added");
}

// Records of kernel names. A process can pass any handle, alias and name to CUDA.
TARGET(kernel_names)
{
    KernelNames names("");
    const ImageId no_process{.pid = 1U << 30, .serial = 1}; // above the largest pid
    Parts parts(input);
    for (int i = 0; i < 64 && !parts.over(); i++) {
        name_record record{};
        record.source = parts.number<uint8_t>() % 4;
        record.image = no_process;
        record.handle = parts.number<uint8_t>();
        record.alias = parts.number<uint8_t>();
        record.name_address = parts.number<uint8_t>();
        record.length = parts.number<int8_t>();
        const std::string_view text = parts.text();
        // Aligned, and as small as possible, so that sanitizers detect reads past the end.
        std::vector<uint64_t> buffer((sizeof(record) + text.size() + 7) / 8);
        memcpy(buffer.data(), &record, sizeof(record));
        memcpy(reinterpret_cast<char*>(buffer.data()) + sizeof(record), text.data(), text.size());
        names.learn(*reinterpret_cast<const name_record*>(buffer.data()), sizeof(record) + text.size());
    }
    for (uint64_t handle = 0; handle < 256; handle++) {
        const auto name = names.name(no_process, handle);
        expect(!name || !name->text.empty(), "names are not empty");
        expect(!name || name->source != NameSource::none, "each name has a source");
        const auto again = names.name(no_process, handle);
        expect(!name || (again && (name->is_mangled || again->text == name->text)), "readable names do not change");
    }
}

// Scan of any file for the kernels that it registers.
TARGET(registrations)
try {
    const Elf elf(file_with(input));
    const Registrations found = scan_registrations(elf);
    const auto again = decode_registrations(encode(found));
    expect(again && again->kernels.size() == found.kernels.size() && again->handles.size() == found.handles.size(),
           "the result survives a round trip");
    const ElfImage image(elf);
    for (const Registration& kernel : found.kernels)
        expect(registered_name(image, kernel).size() <= 16 << 10, "names are bounded");
    for (const HandleVariable& handle : found.handles)
        keeps_handle(image, handle);
} catch (const Error&) { // most inputs are not ELF files
}

// Results of a registration scan, received from a helper or read from the cache.
TARGET(scan_cache)
{
    const auto found = decode_registrations(input);
    if (found) {
        expect(encode(*found) == input, "the result survives a round trip");
        for (const Registration& kernel : found->kernels)
            expect(found->kernel(kernel.stub), "each kernel can be found by its stub");
    }
    static const Folder folder;
    static const std::string id = "0123456789abcdef";
    folder.write(id + "-1", input);
    chmod((folder.path() + '/' + id + "-1").c_str(), 0600);
    expect(ScanCache(folder.path()).find(id, 1).has_value() == found.has_value(), "the cache accepts the same inputs");
}

// Symbols of addresses in any mapped file, including its compressed .gnu_debugdata.
TARGET(symbols)
{
    if (input.empty())
        return;
    const Fd file = file_with(input);
    void* const mapped = mmap(nullptr, input.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
    expect(mapped != MAP_FAILED, "a file can be mapped");
    const auto start = reinterpret_cast<uint64_t>(mapped);
    std::vector<uint64_t> addresses;
    for (uint64_t at = 0; at < input.size() && addresses.size() < 64; at += 1 + input.size() / 64)
        addresses.push_back(start + at);
    UserSymbols symbols;
    const StackQuestion question{{.pid = static_cast<uint32_t>(getpid()), .serial = 1}, addresses, true};
    const StackAnswer answer = symbols.answer(question);
    expect(!answer.frames.empty() && answer.frames.size() <= addresses.size(), "each address has at most one frame");
    for (const StackAnswer::Frame& frame : answer.frames) {
        expect(frame.text.size() <= StackAnswer::text_max, "frames are bounded");
        expect(frame.text.find("fuzzed") != std::string::npos, "each frame names the file");
    }
    expect(message_of(answer).size() <= Connection::message_max, "the answer fits into a message");
    munmap(mapped, input.size());
}
