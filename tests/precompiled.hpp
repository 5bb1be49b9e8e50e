// SPDX-License-Identifier: Apache-2.0
// Precompiled header of the tests: see src/precompiled.hpp.
#include "src/precompiled.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
