// SPDX-License-Identifier: Apache-2.0
// Replacement for libFuzzer's main(), for any compiler. replay FOLDER...: runs the target once on each file in these
// folders.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv)
{
    unsigned inputs = 0;
    for (int i = 1; i < argc; i++)
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            std::ifstream file(entry.path(), std::ios::binary);
            const std::string input(std::istreambuf_iterator<char>(file), {});
            fprintf(stderr, "%s\n", entry.path().c_str());
            LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
            inputs++;
        }
    fprintf(stderr, "%u\n", inputs);
    return inputs > 0 ? 0 : 1;
}
