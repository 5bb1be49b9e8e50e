// SPDX-License-Identifier: Apache-2.0
// What a live screen shows of its snapshots and how keys change that. No terminal is needed for any of it.
#pragma once

#include "screen/history.hpp"
#include "screen/keys.hpp"
#include "screen/layout.hpp"
#include "screen/preferences.hpp"
#include "screen/snapshot.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

// What would have gone to stderr, shown for a while each and kept to be read later.
class Messages {
public:
    struct Message {
        std::string text;
        double until = 0; // when the next one takes its place
        size_t times = 1; // in a row
    };

    // now: seconds of a clock that never goes back.
    void add(std::string text, double now);
    // It is shown no longer; those behind it come sooner.
    void withdraw(std::string_view text, double now);
    const Message* current(double now) const; // the one to be shown now; none: nullptr
    const std::deque<Message>& all() const { return all_; }

private:
    std::deque<Message> all_;
};

struct ScreenOptions {
    std::string tool = "cudatop"; // in the title and in the names of saved files
    std::string sort{};           // key of a column
    bool ascending = false;       // smallest first
    std::string then{};           // as in Arrangement
    std::optional<Preferences::Columns> columns{};
    std::string filter{};
    std::chrono::nanoseconds interval = std::chrono::seconds(1);
    bool tree = false;
    bool mouse = true;
    std::optional<bool> colours{}; // false: none, whatever the terminal has
    std::string starting{};        // as in ScreenState
    std::vector<std::string> by_choices{"pid", "thread", "container", "pod", "namespace", "cgroup", "kernel", "device"};
};

enum class View { list, detail, help, messages, troubles, choose_sort, choose_by, choose_columns };
enum class Prompt { none, filter, search, interval, save, signal };

struct ScreenState {
    explicit ScreenState(const ScreenOptions& options);

    std::string tool;
    std::vector<std::string> by_choices;
    Size size;
    Glyphs glyphs = Glyphs::ascii;
    double now = 0; // seconds of a clock that never goes back

    Arrangement arrangement;
    std::vector<std::string> shown;            // keys of columns, in their order
    std::set<std::string, std::less<>> hidden; // by keys that were pressed
    bool columns_chosen = false;               // by such keys, too
    std::string by_chosen;                     // empty: none
    std::chrono::nanoseconds interval;
    bool paused = false; // the snapshot stands still
    size_t behind = 0;   // intervals since then

    // The list. Nothing selected stands for the first line, whatever comes to be there.
    std::string selected; // id of the row
    int selected_at = 0;  // where it was last, for when it ends
    int first_row = 0;
    int first_column = 0;                           // how many are scrolled away
    std::map<std::string, int, std::less<>> widths; // by key: the widest number so far, so that columns stand still
    std::set<std::string, std::less<>> known;       // columns that have been offered

    // The list is of the processes of one row of another list: a pod's, a container's, ...
    struct Within {
        std::string id, name, by; // of that row; none: empty
    } within;
    std::string reselect; // the row to be selected once it is there

    View view = View::list;
    View before = View::list; // where the help or the messages were asked for
    int page_top = 0;         // of what is not the list: lines and columns scrolled away
    int page_left = 0;
    int choice = 0; // the line that a chooser is at

    std::string open;      // id of the row of the drill-down
    std::string open_name; // for when it has ended
    std::string plotted;   // key of the column whose history is shown
    History history;
    std::set<std::string, std::less<>> folded; // branches of the tree

    Prompt prompt = Prompt::none;
    std::string input;        // what has been typed
    bool proposed = false;    // it is a proposal, which typing takes the place of
    RowProcess signal_target; // the process that a signal may be sent to
    std::string signal_name;  // and what its row says of it
    std::string before_input; // the filter or the search that it takes the place of
    std::string search;
    Messages messages;
    double unknown_key = -1; // when one was told of last
    bool mouse = true;       // is taken
    std::string starting;    // what is being done before there is anything to show; empty: there is
    std::string about;       // the column that rows are sorted by now, shown for a while
    double about_until = 0;
};

// What a key asks of others.
struct Action {
    enum Kind {
        quit,     // also when the terminal has gone
        interval, // the state has another one
        by,       // text: what rows are to stand for
        within,   // text: id of the row whose processes rows are to be; empty: all as before
        open,     // text: id of the row; empty: closed
        refresh,  // a snapshot now, if there can be one
        save,     // text: the name
        repaint,
        theme,
        mouse,
        signal, // number: the signal; process: to which; text: its name for the user
        // Of snapshots that are of a recording.
        play,  // goes on, or stops
        speed, // number: 1 is twice as fast, -1 half
        step,  // number: of moments, back where it is negative
        leap   // number: of minutes
    };
    Kind kind;
    std::string text{};
    RowProcess process{};
    int number = 0;
};

// A key was pressed.
std::vector<Action> press(ScreenState& state, const Snapshot& snapshot, Key key);

// Makes the state agree with a snapshot or a size that are new: rows that have ended, columns that have come, pages
// that have become shorter.
void clamp(ScreenState& state, const Snapshot& snapshot);

// What keys have made of it that was not so at first, but for colours.
Preferences chosen(const ScreenState& state, const ScreenOptions& initial);

std::string interval_text(std::chrono::nanoseconds interval); // "0.5s"

} // namespace gpusnoop
