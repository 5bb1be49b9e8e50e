// SPDX-License-Identifier: Apache-2.0
// Tests that every result code of CUDA's headers has a name. Built only if the headers are present; abi.mk generates
// results.def from them.
#include "attach/probes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cuda.h>
#include <driver_types.h>

using gpusnoop::Library;
using gpusnoop::result_name;

TEST_CASE("result names are those of CUDA's headers")
{
    struct Result {
        Library library;
        int code;
        const char* name;
    };
    constexpr Result results[] = {
#define RESULT(library, name) {Library::library, name, #name},
#include "results.def"
#undef RESULT
    };
    CHECK(std::size(results) > 180); // fewer: the make rule that generates results.def is wrong
    for (const Result& result : results)
        CHECK(result_name(result.library, result.code) == result.name);
}
