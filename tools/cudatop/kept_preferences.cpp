// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/kept_preferences.hpp"

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "tools/cudatop/columns.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop::cudatop {
namespace {

std::string shortened(std::string_view text)
{
    std::string shown;
    append_printable(shown, text, 40);
    return shown;
}

void make_key(std::string& column)
{
    try {
        column = column_key(column);
    } catch (const UsageError&) {
        throw Error(fmt::format("there is no column '{}'", shortened(column)));
    }
}

void make_keys(std::vector<std::string>& columns)
{
    std::set<std::string> seen;
    std::ranges::for_each(columns, make_key);
    std::erase_if(columns, [&](const std::string& key) { return !seen.insert(key).second; });
}

// Validates preferences read from the file. Columns may be named by their headers, because users edit the file by hand.
void check_names(Preferences& preferences)
{
    if (preferences.order)
        make_key(preferences.order->column);
    if (preferences.columns) {
        make_keys(preferences.columns->shown);
        make_keys(preferences.columns->hidden);
    }
    try {
        Settings().choose_rows(preferences.by.value_or("pid"));
    } catch (const UsageError&) {
        throw Error(fmt::format("rows cannot be grouped by '{}'", shortened(*preferences.by)));
    }
}

} // namespace

KeptPreferences::KeptPreferences(std::optional<OwnFile> file) : file_(std::move(file))
{
    try {
        const auto text = file_ ? file_->read() : std::nullopt;
        if (!text)
            return;
        try {
            Preferences read = preferences_in(*text);
            check_names(read);
            preferences_ = std::move(read);
        } catch (const Error& error) {
            throw Error(fmt::format("'{}': {}", file_->path(), error.what()));
        }
    } catch (const Error& error) {
        why_ignored_ = fmt::format("screen settings are neither loaded nor saved: {}", error.what());
    }
}

void KeptPreferences::warn_if_ignored() const
{
    if (!why_ignored_.empty())
        warn(why_ignored_);
}

void KeptPreferences::keep(const Preferences& chosen) const
{
    if (!file_ || !why_ignored_.empty() || chosen == Preferences())
        return;
    try {
        file_->write(preferences_text(joined(preferences_, chosen)));
    } catch (const Error& error) {
        warn(fmt::format("cannot save the screen settings: {}", error.what()));
    }
}

} // namespace gpusnoop::cudatop
