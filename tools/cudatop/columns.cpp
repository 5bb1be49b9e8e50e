// SPDX-License-Identifier: Apache-2.0
#include "tools/cudatop/columns.hpp"

#include "base/text.hpp"
#include "proc/process.hpp"
#include "tools/cudatop/fields.hpp"
#include "tools/cudatop/verdicts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace gpusnoop::cudatop {
namespace {

using K = Key;
using G = Group;
using C = Context;

constexpr int16_t owner_width = 18;

// True for columns that name a row.
bool is_name(std::string_view header)
{
    constexpr std::string_view names[] = {"PID",    "COMM",   "NAMESPACE", "POD",    "CONTAINER",
                                          "CGROUP", "KERNEL", "DEVICE",    "TROUBLE"};
    return std::ranges::find(names, header) != std::end(names);
}

// True for shared columns that cudatop hides by default, because POD/COMMAND already shows the owner.
bool is_rarely_shown(std::string_view header)
{
    return header == "NSPID" || header == "OWNER";
}

struct AnyField {
    const Field<C, K, G>* field;
    const TopField* own; // null if the field is shared by all tools
};

// The fields of all views: first the fields that name the row, then its values.
std::vector<AnyField> all_fields()
{
    std::vector<AnyField> all;
    for (const auto& field : who_fields<K, G, C>)
        if (field.column.key != "command_line") // own_fields() replaces it
            all.push_back({&field, nullptr});
    for (const auto& field : owner_fields<K, G, C>)
        all.push_back({&field, nullptr});
    for (const TopField& own : own_fields())
        all.push_back({&own.field, &own});
    return all;
}

struct Chosen : ShownField<C, K, G> {
    const TopField* own;
};

// Adds the columns of a field. A field with two forms has two columns: one for text, and one for scripts with the plain
// value.
void add_columns(std::vector<Chosen>& to, const AnyField& any, Shown where)
{
    static const TopField for_scripts{{}, "", Usual::no, false};
    std::vector<ShownField<C, K, G>> columns;
    add_shown(columns, *any.field, where);
    for (const auto& column : columns)
        to.push_back({column, any.field->text_value && column.column.header.empty() ? &for_scripts : any.own});
}

std::vector<Chosen> all_columns()
{
    std::vector<Chosen> all;
    for (const AnyField& any : all_fields())
        add_columns(all, any, Shown::both);
    return all;
}

// Moves TROUBLE next to the columns that name the row, so that it stays in view with them.
std::vector<Chosen> with_trouble_beside_names(std::vector<Chosen> all)
{
    const auto trouble =
        std::ranges::find_if(all, [](const Chosen& chosen) { return chosen.own && chosen.own->by_severity; });
    const auto names = std::find_if(std::reverse_iterator(trouble), all.rend(),
                                    [](const Chosen& chosen) { return is_name(chosen.column.header); });
    if (trouble != all.end() && names != all.rend())
        std::rotate(names.base(), trouble, trouble + 1);
    return all;
}

// Columns that apply to this grouping and these options, including those that are hidden by default.
std::vector<Chosen> chosen_fields(const C& c)
{
    std::vector<Chosen> all;
    for (const AnyField& any : all_fields())
        add_columns(all, any, any.field->shown(c));
    return with_trouble_beside_names(std::move(all));
}

// True if the column is shown by default.
bool is_usual(const Field<C, K, G>& field, const TopField* own, const Context& context)
{
    if (!own)
        return !is_rarely_shown(field.column.header) || context.options.extra_columns;
    if (own->device_side && !context.figures.available())
        return false;
    if (!own->needs.empty())
        return context.settings.latency;
    return own->usual == Usual::batch || (own->usual == Usual::screen && context.settings.screen);
}

// Converts a column for the screen. Does not set `shown`.
TopColumn column_of(const Column& of, const TopField* own)
{
    TopColumn column{.column = of, .about = own ? own->about : "", .needs = own ? own->needs : ""};
    if (of.key.empty()) // the screen identifies columns by their key
        column.column.key = of.header;
    if (!own) // a shared column, narrower than in other tools to leave room for numbers
        column.column.width = std::min<int16_t>(column.column.width, owner_width);
    column.device_side = own && own->device_side;
    column.adds = own && own->adds;
    column.by_severity = own && own->by_severity;
    column.bad = own && own->bad;
    column.trend = of.header == "TREND";
    column.stays = is_name(of.header);
    return column;
}

// Name of the tree node above a row: the row's pod, else its container, else its owner.
std::string branch_of(const Group& group)
{
    for (const OwnerPart part : {OwnerPart::pod_text, OwnerPart::container_text, OwnerPart::text}) {
        const Cell cell = owner_cell(group.who, part);
        if (const auto* text = std::get_if<std::string>(&cell))
            return *text;
    }
    return {};
}

// Name of the row for processes outside all pods, containers or namespaces: "(no pod)". Empty for other rows.
std::string name_of_none(const Key& key, const View& view)
{
    const WhoView& who = view.who;
    if (who.pid || who.comm || who.cgroup || view.kernel || view.device || !key.who.pod.empty() ||
        !key.who.container.empty() || !key.who.pod_namespace.empty())
        return {};
    if (who.pod)
        return "(no pod)";
    return who.container ? "(no container)" : who.pod_namespace ? "(no namespace)" : "";
}

} // namespace

void Settings::choose_rows(std::string_view dimensions)
{
    View chosen;
    const Dimension own[] = {{"kernel", &chosen.kernel}, {"device", &chosen.device}};
    parse_by(dimensions, chosen, own, false);
    chosen.who.owner = true;
    rows = chosen;
    by = dimensions;
}

Arrangement Settings::arrangement() const
{
    return {.sort = sort, .ascending = ascending, .then = usual_order, .filter = filter, .tree = tree, .frozen = {}};
}

std::string column_key(std::string_view name)
{
    std::string names;
    for (const Chosen& chosen : all_columns()) {
        const Column& column = chosen.column;
        if (column.is_called(name))
            return std::string(column.key.empty() ? column.header : column.key);
        if (!column.header.empty())
            names += fmt::format("{}{}", names.empty() ? "" : ", ", column.header);
    }
    const std::string near = suggestion(name, names);
    throw UsageError(near.empty() ? fmt::format("there is no column '{}'; use {}, or a key of --json", name, names)
                                  : fmt::format("there is no column '{}' (--columns help lists them){}", name, near));
}

std::vector<Column> columns_on_offer()
{
    std::vector<Column> all;
    for (const auto& [field, own] : all_fields()) {
        Column column = documented(*field);
        column.on_request = own ? own->usual != Usual::batch || !own->needs.empty()
                                : field->column.header.empty() || is_rarely_shown(field->column.header);
        if (own && !own->about.empty())
            column.about = own->about;
        all.push_back(column);
    }
    return all;
}

bool is_ascending(std::string_view key)
{
    return std::ranges::any_of(all_columns(), [&](const Chosen& chosen) {
        return chosen.column.is_called(key) && chosen.column.unit == Unit::text &&
               !(chosen.own && chosen.own->by_severity);
    });
}

std::vector<TopColumn> columns(const Context& context)
{
    std::vector<TopColumn> all;
    const ColumnChoice choice(context.options.columns);
    for (const Chosen& chosen : chosen_fields(context)) {
        TopColumn column = column_of(chosen.column, chosen.own);
        column.shown =
            column.column.in_text && choice.shows(chosen.field->column, is_usual(*chosen.field, chosen.own, context));
        all.push_back(column);
    }
    return all;
}

std::vector<TopColumn> columns_of_any_view(bool screen)
{
    std::vector<TopColumn> all;
    for (const Chosen& chosen : with_trouble_beside_names(all_columns())) {
        const TopField* own = chosen.own;
        const bool usual =
            own ? own->by_severity || own->usual == Usual::batch || (own->usual == Usual::screen && screen)
                : !is_rarely_shown(chosen.column.header);
        all.push_back(column_of(chosen.column, own));
        all.back().column.in_json = true;
        all.back().shown = all.back().column.in_text && usual;
    }
    return all;
}

std::string row_id(const Key& key)
{
    const WhoKey& who = key.who;
    // Rounded to the resolution of /proc, because until a process makes its first call, its start time is known only
    // from /proc. Without rounding, the row's id would change at the first call.
    const uint64_t start_ns = to_clock_tick(who.start_ns);
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", who.pid, start_ns, who.tid, who.comm, who.container,
                       who.pod, who.pod_namespace, who.cgroup, gpu_text({key.gpu}), key.kernel);
}

std::vector<TopRow> rows(const std::map<Key, Group>& groups, const Context& context)
{
    const std::vector<Chosen> chosen = chosen_fields(context);
    const bool measured = context.seconds > 0;
    std::vector<TopRow> all;
    for (const auto& [key, group] : groups) {
        const Verdict* verdict = worst(context.diagnosis, key, group);
        TopRow row{row_id(key), branch_of(group), {}, verdict ? static_cast<int>(verdict->severity) : 0};
        if (key.who.pid && key.who.start_ns)
            row.process = {key.who.pid, key.who.start_ns};
        row.none = name_of_none(key, context.settings.rows);
        const bool sampled = context.processes.sampled(group.who.images).has_value();
        for (const Chosen& one : chosen) {
            const bool known = measured || !one.own || one.column.unit == Unit::text;
            row.cells.push_back(known ? one.value(key, group, context) : Cell());
            if (sampled && one.column.of_calls)
                row.cells.back() = estimate_of(row.cells.back());
        }
        all.push_back(std::move(row));
    }
    return all;
}

TopRow total(const std::vector<TopRow>& rows, const std::vector<TopColumn>& columns)
{
    std::vector<const TopRow*> all;
    for (const TopRow& row : rows)
        all.push_back(&row);
    return {"total", "", sum_of(columns, all), 0};
}

} // namespace gpusnoop::cudatop
