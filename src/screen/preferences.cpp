// SPDX-License-Identifier: Apache-2.0
#include "screen/preferences.hpp"

#include "base/error.hpp"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace gpusnoop {

namespace {

using Written = nlohmann::ordered_json;
using Read = nlohmann::json;

template<class T>
void read_field(const Read& from, const char* key, std::optional<T>& to)
{
    if (!from.contains(key))
        return;
    try {
        to = from.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
        throw Error(fmt::format("its \"{}\" has a value of the wrong type", key));
    }
}

template<class T>
void put(Written& to, const char* key, const std::optional<T>& value)
{
    if (value)
        to[key] = *value;
}

template<class T>
void override_with(std::optional<T>& older, const std::optional<T>& newer)
{
    if (newer)
        older = newer;
}

} // namespace

std::optional<std::chrono::nanoseconds> interval_of(double seconds)
{
    if (!(seconds >= 0.1 && seconds <= 60))
        return std::nullopt;
    return std::chrono::milliseconds(std::lround(seconds * 1000));
}

std::string preferences_text(const Preferences& preferences)
{
    Written json = Written::object();
    put(json, "by", preferences.by);
    if (preferences.order) {
        json["sort"] = preferences.order->column;
        json["ascending"] = preferences.order->ascending;
    }
    if (preferences.columns) {
        json["columns"] = preferences.columns->shown;
        json["hidden_columns"] = preferences.columns->hidden;
    }
    if (preferences.interval)
        json["interval_seconds"] = std::chrono::duration<double>(*preferences.interval).count();
    put(json, "tree", preferences.tree);
    put(json, "mouse", preferences.mouse);
    put(json, "colours", preferences.colours);
    return json.dump(4, ' ', false, Written::error_handler_t::replace) + '\n';
}

Preferences preferences_in(std::string_view text)
{
    const Read json = Read::parse(text.begin(), text.end(), nullptr, false);
    if (!json.is_object())
        throw Error("it is not a JSON object");
    Preferences found;
    read_field(json, "by", found.by);
    std::optional<std::string> sort;
    std::optional<bool> ascending;
    read_field(json, "sort", sort);
    read_field(json, "ascending", ascending);
    if (sort)
        found.order = {*sort, ascending.value_or(false)};
    std::optional<std::vector<std::string>> shown, hidden;
    read_field(json, "columns", shown);
    read_field(json, "hidden_columns", hidden);
    if (shown && std::set(shown->begin(), shown->end()).size() != shown->size())
        throw Error("its \"columns\" lists a column twice");
    if (shown && shown->empty())
        throw Error("its \"columns\" is empty");
    if (shown)
        found.columns = {std::move(*shown), std::move(hidden).value_or(std::vector<std::string>())};
    std::optional<double> seconds;
    read_field(json, "interval_seconds", seconds);
    if (seconds)
        found.interval = interval_of(*seconds);
    if (seconds && !found.interval)
        throw Error(fmt::format("its \"interval_seconds\" must be 0.1 to 60, not {}", *seconds));
    read_field(json, "tree", found.tree);
    read_field(json, "mouse", found.mouse);
    read_field(json, "colours", found.colours);
    return found;
}

Preferences joined(const Preferences& older, const Preferences& newer)
{
    Preferences all = older;
    override_with(all.by, newer.by);
    override_with(all.order, newer.order);
    override_with(all.columns, newer.columns);
    override_with(all.interval, newer.interval);
    override_with(all.tree, newer.tree);
    override_with(all.mouse, newer.mouse);
    override_with(all.colours, newer.colours);
    return all;
}

} // namespace gpusnoop
