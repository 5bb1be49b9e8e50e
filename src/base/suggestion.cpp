// SPDX-License-Identifier: Apache-2.0
#include "base/suggestion.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <vector>

namespace gpusnoop {
namespace {

std::string lower(std::string_view text)
{
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

// How many letters are wrong, missing, too many, or swapped with their neighbour.
size_t mistakes(const std::string& typed, const std::string& meant)
{
    const size_t columns = meant.size() + 1;
    std::vector<size_t> table((typed.size() + 1) * columns);
    const auto at = [&](size_t i, size_t j) -> size_t& { return table[i * columns + j]; };
    for (size_t i = 0; i <= typed.size(); i++)
        for (size_t j = 0; j <= meant.size(); j++) {
            if (i == 0 || j == 0) {
                at(i, j) = i + j;
                continue;
            }
            at(i, j) =
                std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (typed[i - 1] != meant[j - 1])});
            if (i > 1 && j > 1 && typed[i - 1] == meant[j - 2] && typed[i - 2] == meant[j - 1])
                at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
        }
    return table.back();
}

} // namespace

std::string suggestion(std::string_view typed, std::string_view known)
{
    constexpr size_t longest = 40; // what is longer is no word
    if (typed.size() > longest)
        return {};
    const std::string word = lower(typed);
    std::string_view nearest;
    size_t least = std::max<size_t>(1, word.size() / 3) + 1;
    for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 2) {
        end = known.find(", ", at);
        const std::string_view one = known.substr(at, end - at);
        const std::string other = lower(one);
        // The beginning of a word is as good as a letter that is wrong.
        const size_t wrong = word.size() >= 3 && other.starts_with(word) ? 1 : mistakes(word, other);
        if (wrong < least && wrong < word.size()) {
            least = wrong;
            nearest = one;
        }
    }
    return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

} // namespace gpusnoop
