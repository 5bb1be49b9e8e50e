// SPDX-License-Identifier: Apache-2.0
// Records of names, each with its size: handles, aliases and names are what a process passes to CUDA.
#include "names/kernel_names.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    KernelNames names("");
    const ImageId nobody{.pid = 1U << 30, .serial = 1}; // no process has such a number
    Parts parts(input);
    for (int i = 0; i < 64 && !parts.over(); i++) {
        name_record record{};
        record.source = parts.number<uint8_t>() % 4;
        record.image = nobody;
        record.handle = parts.number<uint8_t>();
        record.alias = parts.number<uint8_t>();
        record.name_address = parts.number<uint8_t>();
        record.length = parts.number<int8_t>();
        const std::string_view text = parts.text();
        std::vector<uint64_t> there((sizeof(record) + text.size() + 7) / 8); // not a byte of it more than 7 too many
        memcpy(there.data(), &record, sizeof(record));
        memcpy(reinterpret_cast<char*>(there.data()) + sizeof(record), text.data(), text.size());
        names.learn(*reinterpret_cast<const name_record*>(there.data()), sizeof(record) + text.size());
    }
    for (uint64_t handle = 0; handle < 256; handle++) {
        const auto name = names.name(nobody, handle);
        expect(!name || !name->text.empty(), "a name is one");
        expect(!name || name->source != NameSource::none, "a name is from somewhere");
        const auto again = names.name(nobody, handle);
        expect(!name || (again && (name->is_mangled || again->text == name->text)), "a readable name stays");
    }
}
