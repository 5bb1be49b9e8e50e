// SPDX-License-Identifier: Apache-2.0
// State of a live screen, and the effects of keys on it. Independent of the terminal.
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

// Messages that would otherwise be printed to stderr. Each is shown for a while, and kept for the page of messages.
class Messages {
public:
    struct Message {
        std::string text;
        double until = 0; // time at which the next message replaces this one
        size_t times = 1; // how many times in a row this message was added
    };

    // now: monotonic time in seconds.
    void add(std::string text, double now);
    // Stops showing the message, so that later messages are shown earlier.
    void withdraw(std::string_view text, double now);
    const Message* current(double now) const; // the message to show now; null if there is none
    const std::deque<Message>& all() const { return all_; }

private:
    std::deque<Message> all_;
};

struct ScreenOptions {
    std::string tool = "cudatop"; // name of the tool, shown in the title and used in the names of saved files
    std::string sort{};           // key of the sort column
    bool ascending = false;       // sort smallest first
    std::string then{};           // key of the secondary sort column, see Arrangement
    std::optional<Preferences::Columns> columns{};
    std::string filter{};
    std::chrono::nanoseconds interval = std::chrono::seconds(1);
    bool tree = false;
    bool mouse = true;
    std::optional<bool> colours{}; // false: no colours, even if the terminal supports them
    std::string starting{};        // current step of the start-up, see ScreenState
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
    double now = 0; // monotonic time in seconds

    Arrangement arrangement;
    std::vector<std::string> shown;            // keys of the shown columns, in their order
    std::set<std::string, std::less<>> hidden; // keys of columns that the user has hidden
    bool columns_chosen = false;               // the user has changed columns or their order
    std::string by_chosen;                     // grouping chosen by the user; empty if the user has chosen none
    std::chrono::nanoseconds interval;
    bool paused = false; // new snapshots are not shown
    size_t behind = 0;   // number of intervals since the shown snapshot

    // State of the list. If no line is selected, keys act on the first line, even when rows move.
    std::string selected; // id of the selected line, or empty
    int selected_at = 0;  // last index of the selected line; used if the line disappears
    int first_row = 0;
    int first_column = 0; // number of columns scrolled away
    // width of the widest number so far, by column key; kept so that columns never shrink
    std::map<std::string, int, std::less<>> widths;
    std::set<std::string, std::less<>> known; // keys of all columns seen so far

    // If set, the list shows only the processes of this row (a pod, a container, ...) of another list.
    struct Within {
        std::string id, name, by; // id, name and grouping of the row; the id is empty if Within is not set
    } within;
    std::string reselect; // id of the row to select when it appears

    View view = View::list;
    View before = View::list; // view to return to after help, messages or troubles
    int page_top = 0;         // number of lines scrolled away, in views other than the list
    int page_left = 0;        // number of columns scrolled away, in views other than the list
    int choice = 0;           // current line of a chooser

    std::string open;      // id of the open row
    std::string open_name; // name of the open row, kept in case the row disappears
    std::string plotted;   // key of the plotted column
    History history;
    std::set<std::string, std::less<>> folded; // branches of the tree whose rows are hidden

    Prompt prompt = Prompt::none;
    std::string input;        // text typed so far
    bool proposed = false;    // the input is a proposed text, which is replaced when the user types
    RowProcess signal_target; // process to signal if the user confirms
    std::string signal_name;  // name of that process's row
    std::string before_input; // search text before the prompt was opened, which Esc restores
    std::string search;
    Messages messages;
    double unknown_key = -1; // time of the last message about an unknown key, as in `now`; -1: none
    bool mouse = true;       // the screen receives mouse events
    std::string starting;    // current step of the start-up; empty when the start-up is complete
    std::string about;       // description of the new sort column, shown for a while
    double about_until = 0;  // time until which `about` is shown, as in `now`
};

// Action that a key press requests. Screen itself saves, repaints, and changes theme and mouse. It passes all other
// actions to its owner (Screen::Requests).
struct Action {
    enum Kind {
        quit,     // end the run; also requested if the terminal was closed
        interval, // ScreenState::interval has changed
        by,       // text: new grouping
        within,   // text: id of the row whose processes are to be listed; empty: return to the list of all rows
        open,     // text: id of the row to open; empty: close the open row
        refresh,  // show a new snapshot now, if possible
        save,     // text: file name
        repaint,
        theme,
        mouse,
        signal, // number: signal number; process: target; text: name of the target's row
        // Only for recordings:
        play,  // play or pause
        speed, // number: 1 for twice as fast, -1 for half as fast
        step,  // number: how many reports to go forward; negative: back
        leap   // number: how many minutes to go forward; negative: back
    };
    Kind kind;
    std::string text{};
    RowProcess process{};
    int number = 0;
};

// Applies a key press to the state. Returns the actions that the key press requests.
std::vector<Action> press(ScreenState& state, const Snapshot& snapshot, Key key);

// Adapts the state to a new snapshot or screen size: rows may have disappeared, columns may be new, and pages may be
// shorter.
void clamp(ScreenState& state, const Snapshot& snapshot);

// Returns the settings that differ from the initial options, except Preferences::colours.
Preferences chosen(const ScreenState& state, const ScreenOptions& initial);

std::string interval_text(std::chrono::nanoseconds interval); // such as "0.5s"

} // namespace gpusnoop
