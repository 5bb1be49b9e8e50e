// SPDX-License-Identifier: Apache-2.0
// The half of the grammar that is about names; itanium_types.cpp has types and arguments.
#include "names/itanium.hpp"

namespace gpusnoop::itanium {

namespace {

constexpr Code operators[] = {
    {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"aw", " co_await"}, {"ps", "+"},
    {"ng", "-"},    {"ad", "&"},      {"de", "*"},       {"co", "~"},         {"pl", "+"},         {"mi", "-"},
    {"ml", "*"},    {"dv", "/"},      {"rm", "%"},       {"an", "&"},         {"or", "|"},         {"eo", "^"},
    {"aS", "="},    {"pL", "+="},     {"mI", "-="},      {"mL", "*="},        {"dV", "/="},        {"rM", "%="},
    {"aN", "&="},   {"oR", "|="},     {"eO", "^="},      {"ls", "<<"},        {"rs", ">>"},        {"lS", "<<="},
    {"rS", ">>="},  {"eq", "=="},     {"ne", "!="},      {"lt", "<"},         {"gt", ">"},         {"le", "<="},
    {"ge", ">="},   {"ss", "<=>"},    {"nt", "!"},       {"aa", "&&"},        {"oo", "||"},        {"pp", "++"},
    {"mm", "--"},   {"cm", ","},      {"pm", "->*"},     {"pt", "->"},        {"cl", "()"},        {"ix", "[]"},
};

// "ns::Class<int>" -> "Class", for constructors.
std::string_view last_component(std::string_view scope)
{
    int nesting = 0;
    size_t end = scope.size();
    for (size_t i = scope.size(); i > 0; --i) {
        char c = scope[i - 1];
        nesting += c == '>' || c == ']' ? 1 : c == '<' || c == '[' ? -1 : 0;
        if (nesting == 0 && (c == '<' || c == '['))
            end = i - 1;
        if (nesting == 0 && c == ':')
            return scope.substr(i, end - i);
    }
    return scope.substr(0, end);
}

} // namespace

bool Demangler::take(std::string_view token)
{
    bool found = in_.substr(at_).starts_with(token);
    at_ += found ? token.size() : 0;
    return found;
}

void Demangler::expect(std::string_view token)
{
    if (!take(token))
        throw GiveUp{};
}

std::string_view Demangler::take_one_of(std::span<const Code> codes)
{
    for (const Code& code : codes)
        if (take(code.code))
            return code.text;
    return {};
}

size_t Demangler::number()
{
    if (!is_digit(peek()))
        throw GiveUp{};
    size_t value = 0;
    for (; is_digit(peek()) && value <= longest_name; ++at_)
        value = value * 10 + static_cast<size_t>(peek() - '0');
    return value;
}

// "_" is 0, "0_" is 1, "1_" is 2.
size_t Demangler::index()
{
    size_t value = peek() == '_' ? 0 : number() + 1;
    expect("_");
    return value;
}

void Demangler::charge(size_t characters)
{
    work_ += characters + 1;
    if (characters > longest_result || work_ > work_budget)
        throw GiveUp{};
}

Saved<unsigned> Demangler::deeper()
{
    if (depth_ == deepest)
        throw GiveUp{};
    return Saved(depth_, depth_ + 1);
}

void Demangler::remember(const Type& type, std::optional<size_t> parameter)
{
    charge(type.left.size() + type.right.size());
    seen_.push_back({type, parameter});
}

std::string Demangler::join(const std::vector<Type>& types)
{
    std::string text;
    for (const Type& type : types) {
        if (type.kind == Type::nothing)
            continue;
        text.append(text.empty() ? "" : ", ").append(type.left).append(type.right);
        charge(type.left.size() + type.right.size());
        if (text.size() > longest_result)
            throw GiveUp{};
    }
    return text;
}

std::string Demangler::encoding(Signature shown)
{
    auto depth = deeper();
    Saved before(naming_, true);
    Name function = name();
    if (peek() == '\0' || peek() == 'E' || peek() == '.')
        return function.text;

    naming_ = false;
    if (depth_ > 1)
        return signature(function, shown);
    try {
        return signature(function, shown);
    } catch (const Expression&) {
        at_ = in_.size();
        return function.text;
    }
}

std::string Demangler::signature(const Name& function, Signature shown)
{
    Type result;
    if (function.has_return_type) {
        result = type();
        if (result.right.empty())
            result.left += ' ';
    }
    std::string text = function.text;
    std::string arguments = parameters();
    if (shown != Signature::none)
        text += "(" + arguments + ")";
    if (shown == Signature::whole)
        text = result.left + text + result.right;
    if (shown != Signature::none)
        text += function.qualifiers;
    charge(text.size());
    return text;
}

Name Demangler::name()
{
    if (take("N"))
        return nested_name();
    if (take("Z"))
        return local_name();
    Name result;
    if (peek() == 'S' && peek(1) != 't') { // a template seen before
        result.text = substitution().text();
        if (peek() != 'I')
            throw GiveUp{};
    } else {
        result.text = take("St") ? "std::" + unqualified_name("std") : unqualified_name({});
        if (peek() == 'I')
            remember({result.text, {}});
    }
    if (peek() == 'I') {
        result.text += template_args();
        result.has_return_type = true;
    }
    return result;
}

Name Demangler::nested_name()
{
    Name result;
    const bool is_restrict = take("r"), is_volatile = take("V"), is_const = take("K");
    result.qualifiers.append(is_const ? " const" : "").append(is_volatile ? " volatile" : "");
    result.qualifiers.append(is_restrict ? " restrict" : "").append(take("R") ? " &" : take("O") ? " &&" : "");

    std::string& text = result.text;
    bool is_special = false; // constructor, destructor or conversion: a template of it has no return type
    while (!take("E")) {
        if (take("M")) // the next component is a lambda in the initialiser of this member
            continue;
        const bool is_first = text.empty();
        if (is_first && take("St")) {
            text = "std";
            continue;
        }
        if (is_first && peek() == 'S') {
            text = substitution().text();
            continue;
        }
        if (is_first && peek() == 'T') {
            expect("T");
            size_t parameter = index();
            text = template_argument(parameter).text();
            if (peek() != 'E')
                remember({text, {}}, parameter);
            continue;
        } else if (!is_first && peek() == 'I') {
            text += template_args();
            result.has_return_type = !is_special;
        } else {
            is_special = peek() == 'C' || peek() == 'D' || (peek() == 'c' && peek(1) == 'v');
            result.has_return_type = false;
            text += (is_first ? "" : "::") + unqualified_name(text);
        }
        charge(text.size());
        if (peek() != 'E')
            remember({text, {}});
    }
    if (text.empty()) // NMME
        throw GiveUp{};
    return result;
}

Name Demangler::local_name()
{
    auto outer = args_;
    std::string scope = encoding(Signature::no_result);
    expect("E");
    if (!naming_)
        args_ = std::move(outer);

    Name result;
    if (take("s")) {
        result.text = "string literal";
    } else {
        if (take("d"))
            scope += "::{default arg#" + std::to_string(index() + 1) + "}";
        result = name();
    }
    result.text = scope + "::" + result.text;
    if (take("__")) { // a discriminator, "_0" or "__10_"; c++filt does not show it either
        number();
        expect("_");
    } else if (take("_")) {
        number();
    }
    return result;
}

std::string Demangler::unqualified_name(std::string_view scope)
{
    std::string text;
    take("L"); // internal linkage
    if (is_digit(peek())) {
        text = source_name();
    } else if ((peek() == 'C' || peek() == 'D') && is_digit(peek(1))) {
        text.append(peek() == 'D' ? "~" : "").append(last_component(scope));
        at_ += 2;
    } else if (take("Ul")) {
        {
            Saved lambda(in_lambda_, true);
            text = "{lambda(" + parameters() + ")#";
        }
        expect("E");
        text += std::to_string(index() + 1) + "}";
    } else if (take("Ut")) {
        text = "{unnamed type#" + std::to_string(index() + 1) + "}";
    } else if (take("cv")) {
        text = "operator " + type().text();
    } else if (take("li")) {
        text = "operator\"\" " + source_name();
    } else {
        std::string_view symbol = take_one_of(operators);
        if (symbol.empty())
            throw GiveUp{};
        text.append("operator").append(symbol).append(symbol.ends_with('<') && peek() == 'I' ? " " : "");
    }
    while (take("B"))
        text += "[abi:" + source_name() + "]";
    return text;
}

std::string Demangler::source_name()
{
    size_t length = number();
    if (length == 0 || length > in_.size() - at_)
        throw GiveUp{};
    std::string_view text = in_.substr(at_, length);
    at_ += length;
    charge(length);
    bool is_anonymous = length >= 10 && text.starts_with("_GLOBAL_") && text[9] == 'N';
    return std::string(is_anonymous ? "(anonymous namespace)" : text);
}

std::string Demangler::template_args()
{
    const bool is_own = std::exchange(naming_, false);
    expect("I");
    std::vector<Argument> args;
    std::vector<Type> types;
    while (!take("E")) {
        args.push_back(template_arg());
        const auto& more = args.back().types;
        types.insert(types.end(), more.begin(), more.end());
    }
    naming_ = is_own;
    if (is_own)
        args_ = std::make_shared<const std::vector<Argument>>(std::move(args));
    std::string text = join(types);
    return "<" + text + (text.ends_with('>') ? " >" : ">");
}

} // namespace gpusnoop::itanium
