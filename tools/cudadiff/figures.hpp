// SPDX-License-Identifier: Apache-2.0
// Values of measures, one per block (some seconds of a run), divided by the units of work in the block (--per).
#pragma once

#include "tools/cudadiff/comparison.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop::cudadiff {

class Figures {
public:
    Figures(const Side& side, const WorkUnit& unit, std::string_view name);

    // One value per block, without blocks in which the value is not known. A count that a block lacks is 0.
    std::vector<double> values(const Series& series);
    std::vector<double> ratio(const Series& part, const Series& whole);
    // Time as a share of wall time. Does not depend on the unit of work.
    std::vector<double> share(const Series& series);

    // Throws Error if the recording has no unit of work.
    void require_units();

private:
    const std::vector<Block>& blocks(const Series& series);
    bool is_unit(const Series& series) const;
    double units(const Block& block, const std::string& group) const;
    double units_per_second(const std::string& group);
    double divisor(const Block& block, const Series& series);

    const Side& side_;
    const WorkUnit& unit_;
    std::string_view name_; // name of the side in messages: "A" or "B"
    std::map<std::pair<std::string_view, std::string>, std::vector<Block>> blocks_; // blocks by tool and group
};

} // namespace gpusnoop::cudadiff
