// SPDX-License-Identifier: Apache-2.0
// The half of the grammar that is about types, template arguments and parameters.
#include "names/itanium.hpp"

namespace gpusnoop::itanium {

namespace {

constexpr Code builtin_types[] = {
    {"v", "void"},         {"w", "wchar_t"},
    {"b", "bool"},         {"c", "char"},
    {"a", "signed char"},  {"h", "unsigned char"},
    {"s", "short"},        {"t", "unsigned short"},
    {"i", "int"},          {"j", "unsigned int"},
    {"l", "long"},         {"m", "unsigned long"},
    {"x", "long long"},    {"y", "unsigned long long"},
    {"n", "__int128"},     {"o", "unsigned __int128"},
    {"f", "float"},        {"d", "double"},
    {"e", "long double"},  {"g", "__float128"},
    {"z", "..."},          {"Dn", "decltype(nullptr)"},
    {"Da", "auto"},        {"Dc", "decltype(auto)"},
    {"Di", "char32_t"},    {"Ds", "char16_t"},
    {"Du", "char8_t"},     {"Dh", "half"},
    {"DF16_", "_Float16"}, {"DF16b", "std::bfloat16_t"},
};

constexpr Code standard_names[] = {
    {"Sa", "std::allocator"}, {"Sb", "std::basic_string"}, {"Ss", "std::string"},
    {"Si", "std::istream"},   {"So", "std::ostream"},      {"Sd", "std::iostream"},
};

constexpr Code literal_suffixes[] = {{"i", ""}, {"j", "u"}, {"l", "l"}, {"m", "ul"}, {"x", "ll"}, {"y", "ull"}};

} // namespace

Type Demangler::type()
{
    auto depth = deeper();
    charge(0);
    if (std::string_view builtin = take_one_of(builtin_types); !builtin.empty())
        return {std::string(builtin), {}};
    Type result;
    if (peek() == 'S' && peek(1) != 't') {
        result = substitution();
        if (peek() != 'I')
            return result;
        result.left += template_args();
    } else if (take("T")) {
        size_t parameter = index();
        result = template_argument(parameter);
        remember(result, parameter);
        if (peek() != 'I')
            return result;
        result.left += template_args();
    } else {
        result = composite_type();
    }
    remember(result);
    return result;
}

Type Demangler::substitution()
{
    if (std::string_view standard = take_one_of(standard_names); !standard.empty())
        return {std::string(standard), {}};
    expect("S");
    size_t id = 0;
    if (!take("_")) {
        while (!take("_")) {
            char c = peek();
            if ((!is_digit(c) && !is_upper(c)) || id > longest_name)
                throw GiveUp{};
            id = id * 36 + static_cast<size_t>(is_digit(c) ? c - '0' : c - 'A' + 10);
            ++at_;
        }
        ++id;
    }
    if (id >= seen_.size())
        throw GiveUp{};
    const auto& [type, parameter] = seen_[id];
    charge(type.left.size() + type.right.size());
    return parameter ? template_argument(*parameter) : type;
}

Type Demangler::template_argument(size_t parameter)
{
    if (in_lambda_)
        return {"auto:" + std::to_string(parameter + 1), {}};
    if (!args_ || parameter >= args_->size())
        throw GiveUp{};
    const Argument& argument = (*args_)[parameter];
    if (argument.is_pack && element_) {
        pack_size_ = argument.types.size();
        return *element_ < argument.types.size() ? argument.types[*element_] : Type{{}, {}, Type::nothing};
    }
    Type result = argument.is_pack ? Type{join(argument.types), {}} : argument.types.at(0);
    if (argument.types.empty())
        result.kind = Type::nothing;
    charge(result.left.size() + result.right.size());
    return result;
}

Type Demangler::composite_type()
{
    switch (peek()) {
    case 'r':
    case 'V':
    case 'K': {
        const bool is_restrict = take("r"), is_volatile = take("V"), is_const = take("K");
        Type inner = type();
        if (is_const)
            inner = qualified(std::move(inner), " const");
        if (is_volatile)
            inner = qualified(std::move(inner), " volatile");
        return is_restrict ? qualified(std::move(inner), " restrict") : inner;
    }
    case 'N':
    case 'S':
    case 'Z':
        return {name().text, {}};
    default:
        break;
    }
    if (is_digit(peek()))
        return {name().text, {}};
    if (take("P"))
        return pointer_to(type(), "*");
    if (take("R"))
        return pointer_to(type(), "&");
    if (take("O"))
        return pointer_to(type(), "&&");
    if (take("F"))
        return function_type();
    if (take("DoF"))
        return qualified(function_type(), " noexcept");
    if (take("A"))
        return array_type();
    if (take("M"))
        return member_pointer();
    if (take("Dp"))
        return pack_expansion();
    if (take("Dv")) {
        std::string suffix = " __vector(" + std::to_string(number()) + ")";
        expect("_");
        return qualified(type(), suffix);
    }
    if (take("Dt") || take("DT")) // decltype
        throw Expression{};
    if (take("u"))
        return {source_name(), {}};
    expect("U"); // a vendor's qualifier
    std::string qualifier = " " + source_name();
    return qualified(type(), qualifier);
}

Type Demangler::function_type()
{
    take("Y"); // extern "C"
    Type result = type();
    if (result.right.empty())
        result.left += ' ';
    std::string arguments = "(" + parameters() + ")";
    arguments += take("R") ? " &" : take("O") ? " &&" : "";
    expect("E");
    return {result.left, arguments + result.right, Type::function};
}

Type Demangler::array_type()
{
    if (peek() != '_' && !is_digit(peek()))
        throw Expression{};
    std::string bound = peek() == '_' ? "" : std::to_string(number());
    expect("_");
    Type element = type();
    if (element.right.empty())
        element.left += ' ';
    return {element.left, "[" + bound + "]" + element.right, Type::array};
}

Type Demangler::member_pointer()
{
    std::string symbol = type().text() + "::*";
    Type member = type();
    if (member.kind == Type::plain)
        symbol.insert(0, " ");
    return pointer_to(member, symbol);
}

// The pattern is read once for every element of the packs in it.
Type Demangler::pack_expansion()
{
    Saved outer_element(element_, std::optional<size_t>(0));
    Saved outer_size(pack_size_, std::optional<size_t>());
    const size_t pattern = at_;
    std::vector<Type> types{type()};
    const size_t known = seen_.size();
    const size_t size = pack_size_.value_or(1);
    for (size_t i = 1; i < size; ++i) {
        at_ = pattern;
        element_ = i;
        types.push_back(type());
        seen_.resize(known);
    }
    if (size == 0)
        return {{}, {}, Type::nothing};
    return size == 1 ? types[0] : Type{join(types), {}};
}

Type Demangler::pointer_to(Type to, std::string_view symbol)
{
    if (to.kind == Type::function || to.kind == Type::array) {
        to.left.append("(").append(symbol);
        to.right.insert(0, to.kind == Type::array ? ") " : ")");
        to.kind = Type::plain;
    } else if (to.left.ends_with('&') && symbol.starts_with('&')) { // a reference to a reference
        if (symbol == "&" && to.left.ends_with("&&"))
            to.left.pop_back();
    } else {
        to.left += symbol;
    }
    return to;
}

Type Demangler::qualified(Type type, std::string_view qualifiers)
{
    if (type.kind == Type::function)
        type.right += qualifiers;
    else if (type.kind == Type::array && type.left.ends_with(' '))
        type.left.insert(type.left.size() - 1, qualifiers);
    else
        type.left += qualifiers;
    return type;
}

Argument Demangler::template_arg()
{
    auto depth = deeper();
    if (take("J")) {
        Argument pack{{}, true};
        while (!take("E"))
            for (Type& type : template_arg().types)
                pack.types.push_back(std::move(type));
        return pack;
    }
    if (take("L"))
        return {{{literal(), {}}}};
    if (take("XadL")) { // the address of a function or variable
        std::string text = "&" + literal(Signature::none);
        expect("E");
        return {{{text, {}}}};
    }
    if (peek() == 'X')
        throw Expression{};
    return {{type()}};
}

std::string Demangler::literal(Signature shown)
{
    if (take("_Z")) {
        Saved args(args_, args_);
        std::string text = encoding(shown);
        expect("E");
        return text;
    }
    const char code = peek();
    const size_t start = at_;
    std::string of = type().text();
    const bool is_builtin = at_ == start + 1;
    std::string value = take("n") ? "-" : "";
    for (; is_digit(peek()) || (peek() >= 'a' && peek() <= 'z'); ++at_)
        value += peek();
    expect("E");

    if (is_builtin && code == 'b' && (value == "0" || value == "1"))
        return value == "1" ? "true" : "false";
    if (is_builtin && (code == 'f' || code == 'd' || code == 'e'))
        return "(" + of + ")[" + value + "]";
    for (const Code& suffix : literal_suffixes)
        if (is_builtin && suffix.code[0] == code)
            return value.append(suffix.text);
    return "(" + of + ")" + value;
}

// Up to the end of the encoding, the function type or the lambda's parameters.
std::string Demangler::parameters()
{
    auto at_end = [&](size_t ahead) { return peek(ahead) == '\0' || peek(ahead) == 'E' || peek(ahead) == '.'; };
    auto at_qualifier = [&] { return (peek() == 'R' || peek() == 'O') && peek(1) == 'E'; };
    std::vector<Type> types;
    if (peek() == 'v' && (at_end(1) || ((peek(1) == 'R' || peek(1) == 'O') && peek(2) == 'E'))) {
        ++at_;
        return {};
    }
    while (!at_end(0) && !at_qualifier())
        types.push_back(type());
    return join(types);
}

} // namespace gpusnoop::itanium
