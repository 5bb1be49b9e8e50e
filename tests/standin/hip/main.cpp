// SPDX-License-Identifier: Apache-2.0
// Calls functions of a library by name, with arguments from a script. Reads one command per line from standard input,
// and prints one line of JSON for each:
//
//   open PATH                    use this library for the following commands
//   call FUNCTION COUNT WORD...  call it COUNT times. A WORD is a number, NAME (value of a variable), &NAME (its
//                                address), 'TEXT, {WORD,...} (pointer to these words), NAME={WORD,...} (also stores the
//                                pointer in NAME), or NAME[N] (the word N bytes from where NAME points)
//   order FUNCTION NUMBER        call a control function of the stand-in
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

std::map<std::string, uint64_t> variables; // a map, so that the addresses of its values stay valid
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
        fail("no variable named '" + word + "'");
    return known->second;
}

using Function = int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

// One call site per API, as in real programs. To a tracer, calls of two drivers from the same site would look like one
// driver that jumps to the other.
template<int site>
[[gnu::noinline]] int invoke(Function function, const Words& w)
{
    asm volatile("" ::"i"(site)); // keeps the compiler from merging the sites
    const int result = function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13]);
    asm volatile("" ::"i"(site)); // prevents a tail call
    return result;
}

void call(void* library, std::istringstream& line)
{
    std::string name, word;
    uint64_t count = 0;
    line >> name >> count;
    void* const function = dlsym(library, name.c_str());
    if (!function)
        fail("no function named " + name);
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
            std::getline(line >> std::ws, name); // the rest of the line: a path may contain spaces
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
                fail("no function named " + name);
            reinterpret_cast<void (*)(long)>(function)(number);
            std::cout << "{}" << std::endl;
        } else {
            fail("unknown command, or no library is open: '" + text + "'");
        }
    }
}
