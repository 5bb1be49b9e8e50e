// SPDX-License-Identifier: Apache-2.0
// Itanium names to C++, within bounds. abi::__cxa_demangle will not do for names from a hostile process: 320 bytes of
// back references make it write gigabytes, some names of 100 bytes make it loop for ever, and nothing can stop it. It
// also refuses names over 1024 bytes, which kernels from CUTLASS often have. Here every character copied is charged to
// a budget. The grammar covers what kernels are made of; of a function whose parameters have expressions in them only
// the name is shown. The result reads like c++filt's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop::itanium {

constexpr size_t longest_name = 8 << 10;
constexpr size_t longest_result = 64 << 10;
constexpr size_t work_budget = 4 << 20; // characters: some milliseconds
constexpr unsigned deepest = 256;

struct GiveUp {};              // not a mangled name, or one that costs too much
struct Expression : GiveUp {}; // valid as far as can be told

// What stands left and right of the name in a declaration: "void (*" and ")(int)".
struct Type {
    enum Kind : uint8_t { plain, function, array, nothing }; // nothing: an empty pack
    std::string left, right;
    Kind kind = plain;

    std::string text() const { return left + right; }
};

// What S_ refers to. A template parameter is looked up anew each time: the same one can mean something else outside of
// a local name than in it, and every element of a pack in turn.
struct Seen {
    Type type;
    std::optional<size_t> parameter;
};

struct Argument {
    std::vector<Type> types; // one, or any number in a pack
    bool is_pack = false;
};

struct Name {
    std::string text;
    std::string qualifiers; // " const" of a member function
    bool has_return_type = false;
};

struct Code {
    std::string_view code, text;
};

inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
inline bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

// Gives a value back what it had at the start of a scope.
template<typename T>
class Saved {
public:
    Saved(T& value, T during) : value_(value), before_(std::exchange(value, std::move(during))) {}
    Saved(const Saved&) = delete;
    Saved(Saved&&) = delete;
    Saved& operator=(const Saved&) = delete;
    Saved& operator=(Saved&&) = delete;
    ~Saved() { value_ = std::move(before_); }

private:
    T& value_;
    T before_;
};

// One method per rule of the ABI's grammar; each throws GiveUp where the name does not follow it.
class Demangler {
public:
    explicit Demangler(std::string_view name) : in_(name) {}

    std::string demangle()
    {
        expect("_Z");
        std::string text = encoding();
        if (peek() == '.') // what compilers append to copies: ".cold", ".kd"
            text.append(" [clone ").append(in_.substr(at_)).append("]");
        else if (at_ != in_.size())
            throw GiveUp{};
        return text;
    }

private:
    char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
    bool take(std::string_view token);
    void expect(std::string_view token);
    std::string_view take_one_of(std::span<const Code> codes);
    size_t number();
    size_t index();
    void charge(size_t characters);
    Saved<unsigned> deeper(); // in every rule that can hold itself
    void remember(const Type& type, std::optional<size_t> parameter = {});
    std::string join(const std::vector<Type>& types);

    enum class Signature : uint8_t { whole, no_result, none };
    std::string encoding(Signature shown = Signature::whole);
    std::string signature(const Name& function, Signature shown);
    Name name();
    Name nested_name();
    Name local_name();
    std::string unqualified_name(std::string_view scope);
    std::string source_name();
    std::string template_args();
    Argument template_arg();
    std::string literal(Signature shown = Signature::whole);
    std::string parameters();
    Type type();
    Type substitution();
    Type template_argument(size_t parameter);
    Type composite_type();
    Type function_type();
    Type array_type();
    Type member_pointer();
    Type pack_expansion();
    static Type pointer_to(Type to, std::string_view symbol);
    static Type qualified(Type type, std::string_view qualifiers);

    std::string_view in_;
    size_t at_ = 0;
    size_t work_ = 0;
    unsigned depth_ = 0;
    bool naming_ = false;    // in the encoding's own name: its template arguments are what T_ will mean
    bool in_lambda_ = false; // T_ is an auto parameter
    std::vector<Seen> seen_; // what S_ refers to
    std::shared_ptr<const std::vector<Argument>> args_; // what T_ refers to
    std::optional<size_t> element_;                     // which one of its packs the expansion under way is at
    std::optional<size_t> pack_size_;                   // known once it has met one
};

} // namespace gpusnoop::itanium
