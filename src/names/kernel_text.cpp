// SPDX-License-Identifier: Apache-2.0
#include "names/kernel_text.hpp"

#include "base/options.hpp"
#include "names/scan_cache.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <vector>

namespace gpusnoop {

// The parts of a name, from the most to the least distinctive: the kernel's own name, its first template arguments, the
// arguments nested in them, namespaces. Shortening drops the least distinctive parts first.

namespace {

constexpr int deepest_shown = 8;         // template arguments that are nested deeper are always shown as <...>
constexpr size_t shortest_argument = 18; // columns; a truncated argument shorter than this is useless
constexpr std::string_view ellipsis = "...";
constexpr size_t tag_columns = 5;       // width of tag_of(), such as "#1a2b"
constexpr size_t narrowest_tagged = 24; // columns; in fewer columns, the tag would leave too little room for the name

bool starts_code_point(char c)
{
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

size_t columns(std::string_view text)
{
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

// Returns the byte offset of code point number `column`.
size_t byte_at(std::string_view text, size_t column)
{
    size_t at = 0;
    for (; at < text.size(); ++at)
        if (starts_code_point(text[at]) && column-- == 0)
            break;
    return at;
}

// Replaces the middle of a name by "...", because both ends are distinctive: "triton_red_fused_native_lay...12".
std::string cut_middle(std::string_view text, size_t width)
{
    const size_t all = columns(text);
    if (all <= width)
        return std::string(text);
    if (width <= ellipsis.size())
        return std::string(text.substr(0, byte_at(text, width)));
    const size_t kept = width - ellipsis.size();
    const size_t tail = kept / 2;
    std::string result(text.substr(0, byte_at(text, kept - tail)));
    return result.append(ellipsis).append(text.substr(byte_at(text, all - tail)));
}

struct Token {
    enum Kind : uint8_t { word, scope, open, close, comma, space, other } kind;
    std::string_view text;
    size_t partner = 0; // index of the matching bracket
};

bool is_word(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80);
}

// Returns the length of the symbol after "operator", as in "operator<<". The symbol is part of the word, not a bracket.
size_t operator_length(std::string_view rest)
{
    constexpr std::array<std::string_view, 14> symbols = {
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">", ","};
    for (std::string_view symbol : symbols)
        if (rest.starts_with(symbol)) // adds 1 for the space in "operator< <int>"
            return symbol.size() + (rest.substr(symbol.size()).starts_with(" <") ? 1 : 0);
    return 0;
}

size_t word_length(std::string_view rest)
{
    constexpr std::string_view anonymous = "(anonymous namespace)";
    if (rest.starts_with(anonymous))
        return anonymous.size();
    size_t length = 0;
    while (length < rest.size() && is_word(rest[length]))
        ++length;
    return rest.substr(0, length) == "operator" ? length + operator_length(rest.substr(length)) : length;
}

// Returns a short hash of the whole name. It is the same in every run, and two kernels in a table rarely share it.
std::string tag_of(std::string_view name)
{
    uint32_t hash = 2166136261; // FNV-1a
    for (const char c : name)
        hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
    return fmt::format("#{:04x}", (hash ^ hash >> 16) & 0xffff);
}

class ParsedKernelName {
public:
    explicit ParsedKernelName(std::string_view name);

    std::string shorten(size_t width) const;
    std::string base() const;

private:
    // Parts of a name to show.
    struct Detail {
        int depth = 0;               // template arguments that are nested deeper become <...>
        bool scopes = true;          // show the kernel's namespaces
        bool argument_scopes = true; // show namespaces in template arguments
    };

    void tokenize(std::string_view name);
    bool pair_brackets();
    void find_name();
    size_t after_function_scope(size_t open) const;
    std::string render(size_t from, size_t to, Detail detail, int depth) const;
    std::string leading_arguments(size_t width) const;
    std::string shorten_further(size_t width) const;
    bool is_open(size_t i, char bracket) const
    {
        return tokens_[i].kind == Token::open && tokens_[i].text[0] == bracket;
    }
    bool starts(size_t i, std::string_view text) const
    {
        return i < tokens_.size() && tokens_[i].text.starts_with(text);
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    bool is_parsed_ = false;
    size_t first_ = 0, last_ = 0; // range of tokens [first_, last_) without return type and parameters
    int depth_ = 0;               // nesting depth of the deepest template argument
};

ParsedKernelName::ParsedKernelName(std::string_view name) : text_(name)
{
    tokenize(name);
    is_parsed_ = pair_brackets();
    if (is_parsed_)
        find_name();
}

void ParsedKernelName::tokenize(std::string_view name)
{
    while (!name.empty()) {
        Token::Kind kind = Token::other;
        size_t length = word_length(name);
        if (length > 0) {
            kind = Token::word;
        } else if (name.starts_with("::")) {
            kind = Token::scope;
            length = 2;
        } else if (name.starts_with("->")) {
            length = 2;
        } else {
            length = 1;
            switch (name[0]) {
            case '<':
                // After a name, "<" opens template arguments; elsewhere it means "less than".
                if (!tokens_.empty() && (tokens_.back().kind == Token::word || tokens_.back().text == "]"))
                    kind = Token::open;
                break;
            case '(':
            case '{':
                kind = Token::open;
                break;
            case ')':
            case '}':
            case '>':
                kind = Token::close;
                break;
            case ',':
                kind = Token::comma;
                break;
            case ' ':
                kind = Token::space;
                break;
            default:
                break;
            }
        }
        tokens_.push_back({kind, name.substr(0, length)});
        name.remove_prefix(length);
    }
}

// Returns false if the brackets do not match, as in a truncated name.
bool ParsedKernelName::pair_brackets()
{
    std::vector<size_t> open;
    int depth = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
        if (tokens_[i].kind == Token::open) {
            open.push_back(i);
            depth += tokens_[i].text == "<";
            depth_ = std::max(depth_, depth);
        }
        if (tokens_[i].kind != Token::close)
            continue;
        if (tokens_[i].text == ">" && (open.empty() || tokens_[open.back()].text != "<")) {
            tokens_[i].kind = Token::other; // the ">" means "greater than"
            continue;
        }
        if (open.empty())
            return false;
        if (tokens_[i].text[0] != (is_open(open.back(), '<') ? '>' : is_open(open.back(), '(') ? ')' : '}'))
            return false;
        depth -= tokens_[i].text == ">";
        tokens_[i].partner = open.back();
        tokens_[open.back()].partner = i;
        open.pop_back();
    }
    return open.empty();
}

// Returns the index of the "::" after an enclosing function, as in "f(int) const::{lambda()#1}", or 0 if there is none.
size_t ParsedKernelName::after_function_scope(size_t open) const
{
    size_t i = tokens_[open].partner + 1;
    while (starts(i, " ") && (starts(i + 1, "const") || starts(i + 1, "volatile") || starts(i + 1, "&")))
        i += 2;
    return i < tokens_.size() && tokens_[i].kind == Token::scope ? i : 0;
}

void ParsedKernelName::find_name()
{
    last_ = tokens_.size();
    for (size_t i = 0; i < tokens_.size(); ++i) {
        if (tokens_[i].kind == Token::space && !(i > 0 && tokens_[i - 1].text == "operator"))
            first_ = i + 1; // the tokens before the space form the return type
        if (tokens_[i].kind != Token::open)
            continue;
        const size_t next = is_open(i, '(') ? after_function_scope(i) : 0;
        // In "(*f(int))(float)" and in "decltype (x)", the first parenthesis does not open the parameter list.
        if (is_open(i, '(') && next == 0 && i > first_) {
            last_ = i;
            return;
        }
        i = next ? next - 1 : tokens_[i].partner;
    }
    first_ = 0; // the name is not a function, so keep all of it
}

std::string ParsedKernelName::render(size_t from, size_t to, Detail detail, int depth) const
{
    const bool keep_scopes = depth == 0 ? detail.scopes : detail.argument_scopes;
    std::string out;
    size_t argument = 0; // start of the argument being written
    size_t path = 0;     // start of the qualified name being written
    for (size_t i = from; i < to; ++i) {
        const Token& token = tokens_[i];
        if (token.kind == Token::scope) {
            // A lambda is shown with its enclosing function.
            if (keep_scopes || starts(i + 1, "{") || starts(i + 1, "operator"))
                out += token.text;
            else
                out.resize(path);
        } else if (is_open(i, '<')) {
            std::string inner = depth < detail.depth ? render(i + 1, token.partner, detail, depth + 1) : "...";
            while (inner.ends_with(' ')) // the space in "> >"
                inner.pop_back();
            out.append("<").append(inner).append(">");
            i = token.partner;
        } else if (is_open(i, '{')) {
            for (; i < token.partner; ++i) {
                if (!keep_scopes && is_open(i, '('))
                    i = tokens_[i].partner;
                else
                    out += tokens_[i].text;
            }
            out += "}";
            i = token.partner;
        } else if (is_open(i, '(') && !keep_scopes && after_function_scope(i) != 0) {
            if (out.ends_with("::operator()")) // "operator()" is redundant between nested lambdas
                out.resize(out.size() - std::string_view("::operator()").size());
            out.erase(argument, path - argument); // removes the function's return type
            path = argument;
            i = after_function_scope(i) - 1;
        } else {
            out += token.text;
            if (token.kind != Token::word && token.kind != Token::close)
                path = out.size();
            if (token.kind == Token::comma || (token.kind == Token::space && argument == out.size() - 1))
                argument = out.size();
        }
    }
    return out;
}

// Keeps as many leading template arguments as fit, followed by ", ...".
std::string ParsedKernelName::leading_arguments(size_t width) const
{
    size_t list = last_; // index of the "<" of the name's last template argument list
    for (size_t i = first_; i < last_; ++i) {
        if (is_open(i, '<'))
            list = i;
        if (tokens_[i].kind == Token::open)
            i = tokens_[i].partner;
    }
    if (list == last_ || tokens_[list].partner + 1 != last_)
        return cut_middle(render(first_, last_, {0, false, false}, 0), width);

    std::vector<std::string> arguments(1);
    for (size_t i = list + 1, start = i; i <= tokens_[list].partner; ++i) {
        bool ends = i == tokens_[list].partner;
        if (ends || tokens_[i].kind == Token::comma) {
            arguments.back() = render(start, i, {1, false, false}, 1);
            start = i + 1 + (starts(i + 1, " ") ? 1 : 0);
            if (!ends)
                arguments.emplace_back();
        } else if (tokens_[i].kind == Token::open) {
            i = tokens_[i].partner;
        }
    }

    // Appends as many arguments to `head` as there is room for, and returns their number. With `cut`, truncates long
    // arguments.
    auto fill = [&](std::string& head, bool cut) {
        size_t count = 0;
        for (; count < arguments.size(); ++count) {
            const std::string_view rest = count + 1 == arguments.size() ? ">" : ", ...>";
            std::string next = (count ? ", " : "<") + arguments[count];
            size_t used = columns(head) + rest.size();
            if (used + columns(next) > width) {
                if (!cut || used + shortest_argument > width)
                    break;
                next = (count ? ", " : "<") + cut_middle(arguments[count], width - used - (count ? 2 : 1));
            }
            head += next;
        }
        head += count == arguments.size() ? ">" : count ? ", ...>" : "<...>";
        return count;
    };
    std::string bare = render(first_, list, {0, false, false}, 0);
    const std::string name = bare;
    std::string scoped = render(first_, list, {0, true, false}, 0);
    const size_t count = fill(bare, true);
    if (fill(scoped, false) == count && columns(scoped) <= width)
        return scoped;
    return columns(bare) <= width ? bare : cut_middle(name, width);
}

std::string ParsedKernelName::shorten(size_t width) const
{
    const bool whole = is_parsed_ && depth_ <= deepest_shown;
    for (Detail detail : {Detail{depth_, true, true}, Detail{depth_, true, false}, Detail{depth_, false, false}})
        if (std::string text = whole ? render(first_, last_, detail, 0) : std::string(text_); columns(text) <= width)
            return text;
    if (width < narrowest_tagged)
        return shorten_further(width);
    return shorten_further(width - tag_columns) + tag_of(text_);
}

// Drops template arguments, so different kernels may get the same text.
std::string ParsedKernelName::shorten_further(size_t width) const
{
    if (!is_parsed_)
        return cut_middle(text_, width);
    for (int depth = std::min(depth_ - 1, deepest_shown); depth > 0; --depth)
        for (Detail detail : {Detail{depth, true, true}, Detail{depth, true, false}, Detail{depth, false, false}})
            if (std::string text = render(first_, last_, detail, 0); columns(text) <= width)
                return text;
    return leading_arguments(width);
}

// The name without namespaces and template arguments. A lambda keeps its enclosing function.
std::string ParsedKernelName::base() const
{
    std::string text = is_parsed_ ? render(first_, last_, {0, false, false}, 0) : std::string(text_);
    for (size_t at = 0; is_parsed_ && (at = text.find("<...>", at)) != std::string::npos;)
        text.erase(at, std::string_view("<...>").size());
    return text;
}

} // namespace

std::string shorten_kernel(std::string_view name, size_t width)
{
    // Compilers do not generate longer names than this.
    constexpr size_t longest = 64 << 10;
    if (name.size() > longest)
        return cut_middle(name, width);
    return ParsedKernelName(name).shorten(width);
}

std::string base_of_kernel(std::string_view name)
{
    constexpr size_t longest = 64 << 10;
    return name.size() > longest ? cut_middle(name, 64) : ParsedKernelName(name).base();
}

std::string NameOptions::cache_folder() const
{
    return no_cache ? std::string() : ScanCache::default_folder();
}

void check_name_options(const NameOptions& options)
{
    const std::string& form = options.form;
    if (form != "full" && form != "short" && form != "base")
        throw UsageError(fmt::format("--names takes short, full or base, not '{}'", form));
}

} // namespace gpusnoop
