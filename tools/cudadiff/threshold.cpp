// SPDX-License-Identifier: Apache-2.0
#include "tools/cudadiff/threshold.hpp"

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "tools/cudadiff/words.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace gpusnoop::cudadiff {

Threshold Threshold::parse(std::string_view text)
{
    const size_t sign = text.find_first_of("<>");
    std::string_view number = sign == text.npos ? "" : text.substr(sign + 1);
    Threshold threshold{.text = std::string(text), .measure = std::string(text.substr(0, sign))};
    const bool is_percent = number.ends_with('%');
    number.remove_suffix(is_percent);
    number.remove_prefix(number.starts_with('+'));
    const auto percent = parse_number<double>(number);
    if (sign == text.npos || sign == 0 || !is_percent || !percent || !std::isfinite(*percent))
        throw UsageError(
            fmt::format("--fail-if: '{}' is not a condition; try 'launches>+10%' or 'grid-p50<-20%'", text));
    std::string names;
    for (const Measure& measure : measures())
        names += fmt::format("{}{}", names.empty() ? "" : ", ", measure.name);
    const std::string_view name = std::string_view(threshold.measure).substr(0, threshold.measure.find(':'));
    if (measure_number(name) == measures().size())
        throw UsageError(fmt::format("--fail-if: unknown measure '{}'; the measures are {}{}", name, names,
                                     suggestion(name, names)));
    threshold.above = text[sign] == '>';
    threshold.share = *percent / 100;
    return threshold;
}

std::vector<std::string> Threshold::failures(const Comparison& comparison) const
{
    std::vector<std::string> sentences;
    bool found = false;
    for (const auto* rows : {&comparison.rows, &comparison.kernels, &comparison.kernel_grids})
        for (const Compared& row : *rows) {
            if (row.full_name() != measure)
                continue;
            found = true;
            const Change& change = row.change;
            const std::string group = row.group.empty() ? "" : " for " + printable(row.group);
            if (!change.enough)
                throw Error(fmt::format("--fail-if {} cannot be decided{}: A has {} intervals and B has {}, but 4 of "
                                        "each are needed",
                                        printable(text), group, change.a_count, change.b_count),
                            "record for longer, or with a shorter interval");
            if (!change.significant)
                continue;
            const auto changed = change.share();
            if (above ? !changed || *changed > share : changed && *changed < share)
                sentences.push_back(
                    fmt::format("--fail-if {} is met{}: {}", printable(text), group, percent_text(change)));
        }
    if (!found)
        throw Error(
            fmt::format("--fail-if {} cannot be decided: at least one recording lacks this measure", printable(text)),
            "cudadiff --json lists the measures that both recordings have");
    return sentences;
}

} // namespace gpusnoop::cudadiff
