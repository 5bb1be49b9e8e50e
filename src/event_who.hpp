// SPDX-License-Identifier: Apache-2.0
// The columns of an event line that say whose it is.
#pragma once

#include "table.hpp"
#include "who.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace gpusnoop {

class EventWho {
public:
    // in_text: the pid inside the container and the owner are columns of the text, too.
    EventWho(Processes& processes, bool in_text) : processes_(processes), in_text_(in_text) {}

    void add_columns(std::vector<Column>& columns) const;

    // Fills the cells from row[at] on and returns where they end. Cells of the line before are kept where it came from
    // the same place, so most events cost a comparison.
    size_t fill(Row& row, size_t at, const ImageId& image, const cgroups& ids);

private:
    Processes& processes_;
    bool in_text_;
    std::optional<ImageId> image_;
    cgroups ids_{};
    uint64_t filled_ = 0;
};

} // namespace gpusnoop
