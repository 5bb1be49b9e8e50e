// SPDX-License-Identifier: Apache-2.0
#include "output/svg.hpp"

#include "base/text.hpp"
#include "output/flame_formats.hpp"
#include "output/flames_output.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <ranges>
#include <vector>

namespace gpusnoop {

// Flame graph as a self-contained SVG file, with the outermost frames on top, zoom by click, and search.

namespace {

constexpr double width = 1200, letter = 6.7;
constexpr size_t row_height = 17, head_height = 64;
constexpr size_t frames_max = 20'000; // maximum number of frames; browsers are slow if there are more

// Escapes a name for use in text and attributes.
std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : text)
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        case '\'':
            out += "&#39;";
            break;
        default:
            out += c;
        }
    return out;
}

// Computes the hue of a frame from its name: blue for frames in the kernel, warm colours for others.
unsigned hue_of(std::string_view name)
{
    if (name.ends_with(kernel_mark))
        return 215;
    uint32_t hash = 2166136261;
    for (const char c : name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
    return hash % 65;
}

// Truncates the name to this width, at a code point boundary.
std::string fitted(std::string_view name, double pixels)
{
    const auto room = static_cast<size_t>(std::max(0.0, (pixels - 6) / letter));
    size_t letters = 0, kept = 0;
    for (size_t at = 0; at < name.size(); at++)
        if ((static_cast<unsigned char>(name[at]) & 0xc0) != 0x80 && ++letters == (room > 1 ? room - 1 : 0))
            kept = at;
    return room < 3 ? "" : letters <= room ? std::string(name) : std::string(name.substr(0, kept)) + "..";
}

class Picture {
public:
    explicit Picture(const Flames& flames)
        : flames_(flames), nodes_(flames.stacks.nodes()), totals_(flames.stacks.totals())
    {
        choose();
        place();
    }

    std::string text() const
    {
        std::string out = fmt::format(
            R"({0} xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {1} {2}" width="{1}" height="{2}" role="img" aria-label="flame graph">)",
            svg_begin, width, height());
        append_format(out, "\n<style>{}</style>\n", svg_style);
        head(out);
        for (const uint32_t node : chosen_)
            frame(out, node);
        append_format(out, "<script><![CDATA[{}]]></script>\n</svg>\n", svg_script);
        return out;
    }

private:
    // Chooses the widest frames. The callers of a chosen frame are also chosen: they are at least as wide, and among
    // frames of equal width, callers come first.
    void choose()
    {
        chosen_.resize(nodes_.size() - 1);
        std::iota(chosen_.begin(), chosen_.end(), 1);
        std::erase_if(chosen_, [&](uint32_t node) { return totals_[node] == 0; });
        all_ = chosen_.size();
        std::ranges::stable_sort(chosen_, std::greater<>(), [&](uint32_t node) { return totals_[node]; });
        chosen_.resize(std::min(chosen_.size(), frames_max));
        std::ranges::sort(chosen_);
    }

    // Computes the position of each frame. Siblings are sorted by name, so that two graphs can be compared.
    void place()
    {
        std::vector<std::vector<uint32_t>> called(nodes_.size());
        for (const uint32_t node : chosen_)
            called[nodes_[node].parent].push_back(node);
        begins_.resize(nodes_.size());
        std::vector<uint32_t> next{0};
        while (!next.empty()) {
            const uint32_t node = next.back();
            next.pop_back();
            std::ranges::sort(called[node], {}, [&](uint32_t one) { return flames_.stacks.name(nodes_[one]); });
            double at = begins_[node];
            for (const uint32_t one : called[node]) {
                begins_[one] = at;
                at += static_cast<double>(totals_[one]);
                next.push_back(one);
            }
        }
    }

    size_t height() const
    {
        uint32_t depth = 0;
        for (const uint32_t node : chosen_)
            depth = std::max(depth, nodes_[node].depth);
        return head_height + (depth + 1) * row_height;
    }

    double share(uint64_t weight) const
    {
        return totals_[0] ? static_cast<double>(weight) / static_cast<double>(totals_[0]) : 0;
    }

    void head(std::string& out) const
    {
        const std::string title = fmt::format("{}: {}, {} in total", flames_.tool, flames_.weight.text,
                                              weight_text(flames_.weight, totals_[0]));
        append_format(out, "<text class=\"head\" x=\"3\" y=\"17\">{}</text>\n", escaped(title));
        append_format(out, "<text class=\"note\" x=\"3\" y=\"34\">{}</text>\n",
                      escaped(fitted(printable(flames_.command_line), width)));
        std::string note(flames_.missing);
        if (all_ > chosen_.size())
            note +=
                fmt::format("{}{} frames are too narrow to be shown", note.empty() ? "" : "; ", all_ - chosen_.size());
        if (!totals_[0])
            note += fmt::format("{}there is nothing to show", note.empty() ? "" : "; ");
        append_format(out, "<text class=\"note\" x=\"3\" y=\"50\">{}</text>\n", escaped(note));
        out += R"(<text id="reset" x="830" y="17" tabindex="0">reset zoom</text>)"
               "\n"
               R"(<text id="share" x="1197" y="34" text-anchor="end"></text>)"
               "\n"
               R"(<foreignObject x="1000" y="2" width="198" height="22"><input xmlns="http://www.w3.org/1999/xhtml" )"
               R"(id="what" type="search" placeholder="search: /" aria-label="search"/></foreignObject>)"
               "\n";
    }

    void frame(std::string& out, uint32_t node) const
    {
        const std::string_view name = flames_.stacks.name(nodes_[node]);
        const double begin = totals_[0] ? begins_[node] / static_cast<double>(totals_[0]) : 0;
        const double wide = share(totals_[node]);
        const size_t y = head_height + (nodes_[node].depth - 1) * row_height;
        append_format(out, R"(<g class="f" tabindex="0" data-x="{:.9f}" data-w="{:.9f}" data-d="{}" style="--h:{}">)",
                      begin, wide, nodes_[node].depth, hue_of(name));
        append_format(out, "<title>{}\n{}, {:.2f}%</title>", escaped(name), weight_text(flames_.weight, totals_[node]),
                      100 * wide);
        append_format(out, R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="{}" rx="1"/>)", begin * width, y,
                      std::max(wide * width, 0.1), row_height - 1);
        append_format(out, R"(<text x="{:.2f}" y="{}">{}</text></g>)", begin * width + 3, y + 12,
                      escaped(fitted(name, wide * width)));
        out += '\n';
    }

    const Flames& flames_;
    std::span<const StackTree::Node> nodes_;
    std::vector<uint64_t> totals_;
    std::vector<uint32_t> chosen_;
    std::vector<double> begins_;
    size_t all_ = 0;
};

} // namespace

std::string svg_flames(const Flames& flames)
{
    return Picture(flames).text();
}

} // namespace gpusnoop
