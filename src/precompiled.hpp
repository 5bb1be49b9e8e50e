// SPDX-License-Identifier: Apache-2.0
// Precompiled header with the headers that most files include, to save compile time. Every file must still include what
// it needs: tests/roots/compilers compiles without this header.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>
