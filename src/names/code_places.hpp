// SPDX-License-Identifier: Apache-2.0
// Ids for the call stacks in a report. They depend on the level of detail (whole stack, line or function): stacks that
// look the same at that level share an id.
#pragma once

#include "names/user_stacks.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace gpusnoop {

class CodePlaces {
public:
    enum class By : uint8_t { stack, line, function };
    struct Source {
        std::function<Frames(const ImageId&, int32_t stack, uint64_t caller)> frames;
        std::function<CodePlace(const ImageId&, int32_t stack, uint64_t caller)> place;
    };
    CodePlaces(By by, Source source) : by_(by), source_(std::move(source)) {}

    int32_t number_of(const ImageId& image, int32_t stack, uint64_t caller);
    const Frames& frames(int32_t number) const { return frames_.at(static_cast<size_t>(number)); }
    const CodePlace& place(int32_t number) const { return places_.at(static_cast<size_t>(number)); }
    void clear(); // forgets all ids

private:
    By by_;
    Source source_;
    std::map<std::tuple<ImageId, int32_t, uint64_t>, int32_t> known_;
    std::map<std::pair<CodePlace, std::vector<std::string>>, int32_t> numbers_;
    std::vector<Frames> frames_;
    std::vector<CodePlace> places_;
};

// Returns "dataset.py:88 Loader.__getitem__", or "dataset.py Loader.__getitem__" if the line is unknown. Empty if
// nothing is known.
std::string line_text(const CodePlace& place);

} // namespace gpusnoop
