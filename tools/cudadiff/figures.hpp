// SPDX-License-Identifier: Apache-2.0
// The figures of one measure, block by block, per unit of work.
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

    // One for each block that has one. A count that no row of a block has is 0 there.
    std::vector<double> of(const Series& series);
    std::vector<double> ratio(const Series& part, const Series& whole);
    // Of time: as a share of the time by the clock, whatever the unit is.
    std::vector<double> share(const Series& series);

    // Throws Error where the whole has none.
    void need_units();

private:
    const std::vector<Block>& blocks(const Series& series);
    bool is_unit(const Series& series) const;
    double units(const Block& block, const std::string& group) const;
    double units_per_second(const std::string& group);
    double divisor(const Block& block, const Series& series);

    const Side& side_;
    const WorkUnit& unit_;
    std::string_view name_;                                                         // of the side, for messages
    std::map<std::pair<std::string_view, std::string>, std::vector<Block>> blocks_; // by tool and group
};

} // namespace gpusnoop::cudadiff
