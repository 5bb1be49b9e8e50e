// SPDX-License-Identifier: Apache-2.0
#include "names/stack_names.hpp"

#include "base/text.hpp"
#include "names/kernel_text.hpp"
#include "names/name_messages.hpp"
#include "names/user_symbols.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gpusnoop {
namespace {

constexpr size_t max_kept_names = 100'000; // total for all processes
constexpr size_t max_kept_name = 1024;     // bytes; longer names are cached for one second only
constexpr size_t passing_max = 4096;       // names per process that are kept for one second
constexpr std::chrono::seconds passing_time(1);

bool is_of_cuda(std::string_view function, std::string_view file)
{
    constexpr auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    // If a program links the CUDA runtime statically, these functions are in the program's own file.
    for (const std::string_view prefix : {"cuda", "cu"})
        if (function.size() > prefix.size() && function.starts_with(prefix) && is_upper(function[prefix.size()]))
            return true;
    return file.starts_with("(libcuda");
}

} // namespace

StackNames::StackNames(WaitBudget* waits)
    : reader_({.serve = serve_in_sandbox<UserSymbols>(),
               .apply = [this](const Message& message) { return apply(message); },
               .consequence = "functions in its stacks are no longer named"},
              waits)
{}

std::vector<std::string> StackNames::frames(const ImageId& image, std::span<const uint64_t> addresses)
{
    if (addresses.empty())
        return {};
    make_room();
    Image& known = images_[image];
    // Ask again only once a second, because the helper does not read the mappings more often.
    const auto now = std::chrono::steady_clock::now();
    if (now - known.passing_since >= passing_time || known.passing.size() >= passing_max) {
        known.passing.clear();
        known.awaited.clear();
        known.passing_since = now;
    }
    // If the answer had no room for all names, ask for the rest.
    for (size_t unknown = SIZE_MAX;;) {
        StackQuestion question{.image = image};
        size_t all = 0;
        for (size_t i = 0; i < addresses.size(); i++)
            if (!known.find({addresses[i], i == 0}) && ++all <= StackQuestion::addresses_max) {
                question.innermost |= i == 0;
                question.addresses.push_back(addresses[i]);
            }
        if (all == 0 || all >= std::exchange(unknown, all))
            break;
        if (!reader_.ask(static_cast<pid_t>(image.pid), message_of(question))) {
            ask_for_later(known, question);
            break;
        }
    }
    std::vector<std::string> result;
    size_t code = 1; // number of addresses to keep: trailing addresses that do not point to code are dropped
    for (size_t i = 0; i < addresses.size(); i++) {
        const std::string* const text = known.find({addresses[i], i == 0});
        result.push_back(text && !text->empty() ? *text : fmt::format("{:#x}", addresses[i]));
        if (!text || !text->empty())
            code = i + 1;
    }
    result.resize(code);
    return result;
}

const std::string* StackNames::Image::find(const Key& key) const
{
    for (const auto* names : {&lasting, &passing})
        if (const auto name = names->find(key); name != names->end())
            return &name->second;
    return nullptr;
}

// Sends a question without waiting for the answer. It is sent now, because the process may exit before the next call of
// frames().
void StackNames::ask_for_later(Image& image, const StackQuestion& question)
{
    const auto key_of = [&](const uint64_t& address) {
        return Key(address, question.innermost && &address == question.addresses.data());
    };
    const bool asked = std::ranges::all_of(
        question.addresses, [&](const uint64_t& address) { return image.awaited.contains(key_of(address)); });
    if (asked || !reader_.post(static_cast<pid_t>(question.image.pid), message_of(question)))
        return;
    for (const uint64_t& address : question.addresses)
        image.awaited.insert(key_of(address));
}

void StackNames::make_room()
{
    size_t kept = 0;
    for (const auto& [id, image] : images_)
        kept += image.lasting.size();
    if (kept >= max_kept_names)
        for (auto& [id, image] : images_)
            image.lasting.clear();
}

bool StackNames::apply(const Message& message)
{
    auto answer = read_message<StackAnswer>(message.bytes);
    if (!answer || answer->frames.size() > StackQuestion::addresses_max)
        return false;
    const auto found = images_.find(answer->image);
    if (found == images_.end())
        return true; // the process was forgotten in the meantime
    Image& image = found->second;
    // The generation is 0 if the process exited before this helper started.
    if (answer->generation != 0 && std::exchange(image.generation, answer->generation) != answer->generation)
        image.lasting.clear();
    for (StackAnswer::Frame& frame : answer->frames) {
        auto& names = frame.lasting && frame.text.size() <= max_kept_name ? image.lasting : image.passing;
        names.insert_or_assign({frame.address, frame.innermost}, std::move(frame.text));
    }
    return true;
}

void StackNames::forget(const ImageId& image)
{
    if (images_.erase(image))
        reader_.post(static_cast<pid_t>(image.pid), message_of(StackQuestion{.image = image}));
}

std::string calling_function(std::span<const std::string> frames)
{
    constexpr size_t width = 48;
    for (const std::string& frame : frames) {
        const size_t plus = frame.rfind("+0x"), file = frame.rfind(" (");
        if (plus == std::string::npos || file == std::string::npos || file < plus)
            return {};
        const std::string_view name(frame.data(), plus), in(frame.data() + file + 1);
        if (!is_of_cuda(name, in))
            return printable(fmt::format("{} {}", shorten_kernel(name, width), in));
    }
    return {};
}

} // namespace gpusnoop
