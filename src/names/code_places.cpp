// SPDX-License-Identifier: Apache-2.0
#include "names/code_places.hpp"

#include <fmt/format.h>
#include <utility>

namespace gpusnoop {

int32_t CodePlaces::number_of(const ImageId& image, int32_t stack, uint64_t caller)
{
    const auto [known, added] = known_.try_emplace({image, stack, caller}, 0);
    if (!added)
        return known->second;
    Frames frames;
    CodePlace place;
    if (by_ == By::stack)
        frames = source_.frames(image, stack, caller);
    else
        place = source_.place(image, stack, caller);
    if (by_ == By::function)
        place.line.reset();
    const auto number = static_cast<int32_t>(numbers_.size());
    const auto [found, is_new] = numbers_.try_emplace({place, frames.lines}, number);
    if (is_new) {
        frames_.push_back(std::move(frames));
        places_.push_back(std::move(place));
    }
    return known->second = found->second;
}

void CodePlaces::clear()
{
    known_.clear();
    numbers_.clear();
    frames_.clear();
    places_.clear();
}

std::string line_text(const CodePlace& place)
{
    if (place.function.empty() && place.file.empty())
        return {};
    const std::string_view name = code_file_name(place.file);
    return place.line ? fmt::format("{}:{} {}", name, *place.line, place.function)
                      : fmt::format("{} {}", name, place.function);
}

} // namespace gpusnoop
