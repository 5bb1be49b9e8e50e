// SPDX-License-Identifier: Apache-2.0
#include "screen/screen.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "screen/draw.hpp"
#include "screen/save.hpp"

#include <utility>

namespace gpusnoop {

namespace {

double now()
{
    return static_cast<double>(clock_ns(CLOCK_MONOTONIC)) / 1e9;
}

} // namespace

Screen::Screen(const Options& options, Requests requests)
    : initial_(options), requests_(std::move(requests)), state_(options),
      initially_coloured_(terminal_.coloured() && options.colours.value_or(true)),
      canvas_(terminal_.size().columns, terminal_.size().lines)
{
    state_.glyphs = glyphs_of_locale();
    if (terminal_.coloured() != initially_coloured_)
        terminal_.next_theme();
    capture_warnings();
    if (state_.starting.empty())
        terminal_.set_mouse(state_.mouse);
    draw();
}

Screen::EarlyWarnings::~EarlyWarnings()
{
    for (const std::string& text : kept)
        warn(text);
}

void Screen::capture_warnings()
{
    warnings_.emplace([this](std::string text) { message(std::move(text)); });
    withdrawals_.emplace([this](std::string_view text) {
        state_.now = now();
        state_.messages.withdraw(text, state_.now);
        draw();
    });
}

void Screen::starting(std::string what)
{
    warnings_.emplace([this](std::string text) { early_.kept.push_back(std::move(text)); });
    terminal_.handle_signals();
    state_.starting = std::move(what);
    draw();
    if (!typed_ahead_)
        typed_ahead_.emplace(terminal_.input());
}

void Screen::started()
{
    state_.starting.clear();
    capture_warnings();
    state_.now = now();
    for (std::string& text : std::exchange(early_.kept, {}))
        state_.messages.add(std::move(text), state_.now);
    if (typed_ahead_)
        terminal_.put_back(typed_ahead_->end());
    typed_ahead_.reset();
    terminal_.set_mouse(state_.mouse);
    ready();
}

std::vector<int> Screen::descriptors() const
{
    return {terminal_.input(), terminal_.signals()};
}

void Screen::ready()
{
    terminal_.handle_signals();
    state_.size = terminal_.size();
    state_.now = now();
    for (Key key : terminal_.keys())
        for (const Action& action : press(state_, snapshot_, key))
            act(action);
    draw();
    if (terminal_.closed())
        requests_({.kind = Action::quit});
}

void Screen::show(Snapshot snapshot)
{
    state_.now = now();
    if (snapshot.leaps)
        state_.history = History();
    state_.history.add(snapshot);
    if (!state_.paused || snapshot.by != snapshot_.by) {
        state_.behind = 0;
        snapshot_ = std::move(snapshot);
    } else {
        ++state_.behind;
        if (snapshot_.detail.empty()) { // a row was opened during the pause
            snapshot_.detail = std::move(snapshot.detail);
            snapshot_.detail_of = std::move(snapshot.detail_of);
        }
    }
    draw();
}

void Screen::message(std::string text)
{
    state_.now = now();
    state_.messages.add(std::move(text), state_.now);
    draw();
}

Preferences Screen::chosen() const
{
    Preferences chosen = gpusnoop::chosen(state_, initial_);
    if (terminal_.coloured() != initially_coloured_)
        chosen.colours = terminal_.coloured();
    return chosen;
}

void Screen::act(const Action& action)
{
    switch (action.kind) {
    case Action::save:
        return save(action.text);
    case Action::repaint:
        return terminal_.repaint();
    case Action::theme:
        return terminal_.next_theme();
    case Action::mouse:
        return terminal_.set_mouse(state_.mouse);
    case Action::open:
        snapshot_.detail.clear(); // these details belong to the row that was open before
        [[fallthrough]];
    default:
        requests_(action);
    }
}

void Screen::save(const std::string& name)
{
    try {
        save_screen(name, state_, snapshot_);
        state_.messages.add("saved as '" + name + "'", state_.now);
    } catch (const Error& error) {
        state_.messages.add(error.what(), state_.now);
    }
}

void Screen::draw()
{
    const Size size = state_.size = terminal_.size();
    if (canvas_.columns() != size.columns || canvas_.lines() != size.lines)
        canvas_ = Canvas(size.columns, size.lines);
    clamp(state_, snapshot_);
    gpusnoop::draw(canvas_, state_, snapshot_);
    terminal_.show(canvas_);
}

} // namespace gpusnoop
