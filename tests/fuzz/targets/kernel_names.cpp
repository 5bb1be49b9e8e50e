// SPDX-License-Identifier: Apache-2.0
// Records of kernel names. A process can pass any handle, alias and name to CUDA.
#include "names/kernel_names.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
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
