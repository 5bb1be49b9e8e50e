// SPDX-License-Identifier: Apache-2.0
// Calls functions of a library by name, with the words that it is told, and says what they returned. One command a line
// on standard input, one line of JSON for each on standard output:
//
//   open PATH                    the library that functions are of from now on
//   call FUNCTION COUNT WORD...  a word is a number, &NAME (where a result is to be stored), NAME (what is there),
//                                'TEXT, {WORD,...} (a pointer to these), NAME={WORD,...} (the same, and NAME is that
//                                pointer), or NAME[N] (what is N bytes behind where NAME points to)
//   order FUNCTION NUMBER        of the stand-in's own
//   end
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Words = std::vector<uint64_t>;

std::map<std::string, uint64_t> variables; // whose places stay what they are
std::deque<Words> structures;
std::deque<std::string> texts;

[[noreturn]] void fail(const std::string& why)
{
    std::cerr << "hip: " << why << std::endl;
    exit(1);
}

uint64_t value(std::string_view text);

uint64_t structure(std::string_view text)
{
    Words words;
    for (std::string_view rest = text.substr(1, text.size() - 2); !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find(','));
        words.push_back(value(word));
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    structures.push_back(std::move(words));
    return reinterpret_cast<uint64_t>(structures.back().data());
}

uint64_t value(std::string_view text)
{
    if (text.starts_with('{') && text.ends_with('}'))
        return structure(text);
    const std::string word(text);
    if (word.starts_with('\''))
        return reinterpret_cast<uint64_t>(texts.emplace_back(word.substr(1)).c_str());
    if (const size_t at = word.find("={"); at != word.npos)
        return variables[word.substr(0, at)] = structure(text.substr(at + 1));
    if (const size_t at = word.find('['); at != word.npos)
        return *reinterpret_cast<uint64_t*>(value(text.substr(0, at)) + strtoull(word.c_str() + at + 1, nullptr, 0));
    if (word.starts_with('&'))
        return reinterpret_cast<uint64_t>(&variables[word.substr(1)]);
    if (!word.empty() && (isdigit(word[0]) || word[0] == '-'))
        return strtoull(word.c_str(), nullptr, 0);
    const auto known = variables.find(word);
    if (known == variables.end())
        fail("nothing is called " + word);
    return known->second;
}

using Function = int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

// A call site for each API, as in real programs: calls of two drivers from one site look like a driver that jumps to
// the other.
template<int site>
[[gnu::noinline]] int invoke(Function function, const Words& w)
{
    asm volatile("" ::"i"(site)); // keeps the compiler from merging the sites
    const int result = function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13]);
    asm volatile("" ::"i"(site)); // no jump
    return result;
}

void call(void* library, std::istringstream& line)
{
    std::string name, word;
    uint64_t count = 0;
    line >> name >> count;
    void* const function = dlsym(library, name.c_str());
    if (!function)
        fail("no function " + name);
    Words w;
    while (line >> word)
        w.push_back(value(word));
    w.resize(14);
    const auto invoked = name.starts_with("hip") ? invoke<1> : invoke<0>;
    std::map<int, uint64_t> results;
    for (uint64_t i = 0; i < count; i++)
        results[invoked(reinterpret_cast<Function>(function), w)]++;
    std::cout << "{\"function\":\"" << name << "\",\"results\":{";
    const char* comma = "";
    for (const auto& [result, times] : results) {
        std::cout << comma << '"' << result << "\":" << times;
        comma = ",";
    }
    std::cout << "}}" << std::endl;
}

} // namespace

int main()
{
    void* library = nullptr;
    for (std::string text, command, name; std::getline(std::cin, text);) {
        std::istringstream line(text);
        line >> command;
        if (command == "end")
            return 0;
        if (command == "open") {
            line >> name;
            library = dlopen(name.c_str(), RTLD_NOW);
            if (!library)
                fail(dlerror());
            std::cout << "{}" << std::endl;
        } else if (command == "call" && library) {
            call(library, line);
        } else if (command == "order" && library) {
            long number = 0;
            line >> name >> number;
            void* const function = dlsym(library, name.c_str());
            if (!function)
                fail("no function " + name);
            reinterpret_cast<void (*)(long)>(function)(number);
            std::cout << "{}" << std::endl;
        } else {
            fail("what is '" + text + "'?");
        }
    }
}
