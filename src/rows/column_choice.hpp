// SPDX-License-Identifier: Apache-2.0
// Which columns a table of text shows: the usual ones, or what --columns asks for.
#pragma once

#include "rows/table.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

class ColumnChoice {
public:
    // Headers or JSON keys: these columns alone; or more (+NAME) or fewer (-NAME) than the usual ones. They must
    // outlive the object.
    explicit ColumnChoice(std::span<const std::string> names) : names_(names) {}

    bool shows(const Column& column, bool usually) const;

    // The names of columns that are asked for, and not taken off.
    template<class Function>
    void for_each_wanted(Function function) const
    {
        for (const std::string_view name : names_)
            if (!name.starts_with('-'))
                function(name.substr(name.starts_with('+')));
    }

private:
    std::span<const std::string> names_;
};

// Columns that there is no choice of: those of lines, "line" for a call's.
struct OtherColumns {
    std::string_view of;
    std::vector<Column> columns;
};

// Throws UsageError if a name is of no column, and Answer if it is "help", with a list of them for people, or "json",
// with all of them, the others too, from which scripts/man-page writes the manual.
void check_columns(std::span<const std::string> names, std::span<const Column> columns,
                   std::span<const OtherColumns> others);

} // namespace gpusnoop
