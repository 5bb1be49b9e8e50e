// SPDX-License-Identifier: Apache-2.0
// State of a live screen, and how keys change it. Independent of the terminal.
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

// Messages that would otherwise go to stderr. Each is shown for a while, and all are kept for the page of messages.
class Messages {
public:
    struct Message {
        std::string text;
        double until = 0; // time at which the next one replaces it
        size_t times = 1; // number of consecutive repetitions
    };

    // now: seconds of a monotonic clock.
    void add(std::string text, double now);
    // Stops showing the message; later ones are shown earlier.
    void withdraw(std::string_view text, double now);
    const Message* current(double now) const; // the message to show now, or null
    const std::deque<Message>& all() const { return all_; }

private:
    std::deque<Message> all_;
};

struct ScreenOptions {
    std::string tool = "cudatop"; // in the title and in the names of saved files
    std::string sort{};           // key of a column
    bool ascending = false;       // smallest first
    std::string then{};           // see Arrangement
    std::optional<Preferences::Columns> columns{};
    std::string filter{};
    std::chrono::nanoseconds interval = std::chrono::seconds(1);
    bool tree = false;
    bool mouse = true;
    std::optional<bool> colours{}; // false: none, even if the terminal supports them
    std::string starting{};        // see ScreenState
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
    double now = 0; // seconds of a monotonic clock

    Arrangement arrangement;
    std::vector<std::string> shown;            // keys of columns, in their order
    std::set<std::string, std::less<>> hidden; // keys of columns that the user has hidden
    bool columns_chosen = false;               // the user has changed columns or their order
    std::string by_chosen;                     // grouping chosen by the user; empty: none
    std::chrono::nanoseconds interval;
    bool paused = false; // the shown snapshot is not replaced
    size_t behind = 0;   // intervals since the shown snapshot

    // The list. An empty selection is the first line, even as rows move.
    std::string selected; // id of the line
    int selected_at = 0;  // its last index, for when the row disappears
    int first_row = 0;
    int first_column = 0;                           // number of columns scrolled away
    std::map<std::string, int, std::less<>> widths; // by key: the widest number so far, so that columns never shrink
    std::set<std::string, std::less<>> known;       // keys of all columns seen so far

    // If set, the list shows only the processes of this row (a pod, a container, ...) of another list
    struct Within {
        std::string id, name, by; // of that row; empty: not set
    } within;
    std::string reselect; // id of the row to select once it appears

    View view = View::list;
    View before = View::list; // to return to after help, messages or troubles
    int page_top = 0;         // lines scrolled away, in views other than the list
    int page_left = 0;        // columns scrolled away
    int choice = 0;           // current line of a chooser

    std::string open;      // id of the open row
    std::string open_name; // for when the row has disappeared
    std::string plotted;   // key of the plotted column
    History history;
    std::set<std::string, std::less<>> folded; // branches of the tree

    Prompt prompt = Prompt::none;
    std::string input;        // text typed so far
    bool proposed = false;    // input is a proposal, which typing replaces
    RowProcess signal_target; // the process to signal once the user confirms
    std::string signal_name;  // name of its row
    std::string before_input; // the search before the prompt, restored by Esc
    std::string search;
    Messages messages;
    double unknown_key = -1; // time of the last message about an unknown key
    bool mouse = true;       // the screen receives mouse events
    std::string starting;    // current step of the start-up; empty once it is complete
    std::string about;       // description of the new sort column, shown for a while
    double about_until = 0;
};

// Request for the owner of the screen.
struct Action {
    enum Kind {
        quit,     // also if the terminal was closed
        interval, // ScreenState::interval has changed
        by,       // text: new grouping
        within,   // text: id of the row whose processes to show; empty: leave that list
        open,     // text: id of the row to open; empty: close it
        refresh,  // show a new snapshot now, if possible
        save,     // text: file name
        repaint,
        theme,
        mouse,
        signal, // number: the signal; process: the target; text: name of the target
        // Only for recordings:
        play,  // play or pause
        speed, // number: 1: twice as fast, -1: half as fast
        step,  // number: moments forward, negative: back
        leap   // number: minutes forward, negative: back
    };
    Kind kind;
    std::string text{};
    RowProcess process{};
    int number = 0;
};

// Applies a key press. Returns actions for the owner.
std::vector<Action> press(ScreenState& state, const Snapshot& snapshot, Key key);

// Adapts the state to a new snapshot or size: rows that have disappeared, new columns, shorter pages.
void clamp(ScreenState& state, const Snapshot& snapshot);

// Settings that differ from the initial options, except colours.
Preferences chosen(const ScreenState& state, const ScreenOptions& initial);

std::string interval_text(std::chrono::nanoseconds interval); // "0.5s"

} // namespace gpusnoop
