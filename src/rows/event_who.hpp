// SPDX-License-Identifier: Apache-2.0
// The columns of an event line that say whose it is.
#pragma once

#include "rows/table.hpp"
#include "rows/who.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace gpusnoop {

class EventWho {
public:
    explicit EventWho(Processes& processes) : processes_(processes) {}

    // in_text: the pid inside the container and the owner are columns of the text, too.
    static void add_columns(std::vector<Column>& columns, bool in_text);

    // Fills the cells from row[at] on and returns where they end. Cells of the line before are kept where it came from
    // the same place, so most events cost a comparison.
    size_t fill(Row& row, size_t at, const ImageId& image, const cgroups& ids);

private:
    Processes& processes_;
    std::optional<ImageId> image_;
    cgroups ids_{};
    uint64_t filled_ = 0;
};

} // namespace gpusnoop
