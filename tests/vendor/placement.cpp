// SPDX-License-Identifier: Apache-2.0
// Prints where probes on functions of a library would be placed. Reads names from stdin, and prints a JSON line for
// each. In the output, `looks_up` means that the function only forwards to another known function, and `behind` that
// the probe is placed in that other function.
#include "attach/placement.hpp"
#include "base/error.hpp"

#include <cstdio>
#include <fcntl.h>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv)
try {
    if (argc != 2)
        throw gpusnoop::Error("usage: placement LIBRARY < NAMES");
    const gpusnoop::Elf elf(gpusnoop::Fd(open(argv[1], O_RDONLY | O_CLOEXEC)));
    gpusnoop::DispatchTables tables(elf);
    probe_row without_arguments{};
    for (operand& argument : without_arguments.args)
        argument.word = WORD_ZERO;
    using Word = std::istream_iterator<std::string>;
    const std::vector<std::string> words{Word(std::cin), Word()};
    const std::vector<std::string_view> names(words.begin(), words.end());
    for (const gpusnoop::Symbol& symbol : elf.functions(names)) {
        const auto [offset, placement] = place(elf, tables, symbol, without_arguments);
        const auto text = [](bool it_is) { return it_is ? "true" : "false"; };
        printf(R"({"name":"%s","address":%lu,"delta":%lu,"emulated":%s,"behind":%s,"looks_up":%s})"
               "\n",
               symbol.name.c_str(), symbol.address, placement.delta, text(placement.emulated),
               text(offset != symbol.file_offset), text(tables.target(symbol).has_value()));
    }
} catch (const gpusnoop::Error& error) {
    fprintf(stderr, "placement: %s\n", error.what());
    return 1;
}
