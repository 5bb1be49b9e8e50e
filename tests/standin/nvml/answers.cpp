// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <unistd.h>

namespace {

// Names of queries that are valid in "fail" lines.
const std::set<std::string> queries = {"device",      "compute", "graphics",  "mps",   "name", "pci",
                                       "utilization", "memory",  "memory_v2", "power", "mig",  "samples",
                                       "minor",       "gpm",     "uuid",      "migs"};

// Reads a number, or $NAME: the value of that environment variable of the calling process.
bool read_pid(std::istringstream& words, uint32_t& pid)
{
    std::string word;
    if (!(words >> word))
        return false;
    const char* text = word[0] == '$' ? getenv(word.c_str() + 1) : word.c_str();
    char* end = nullptr;
    pid = text ? static_cast<uint32_t>(strtoul(text, &end, 10)) : 0;
    return text && *text && !*end;
}

bool read_process(std::istringstream& words, Device& device)
{
    Process process{"compute", 0, ~uint64_t{0}, none, none};
    std::string bytes;
    if (!read_pid(words, process.pid) || !(words >> bytes))
        return false;
    if (bytes != "unknown")
        process.bytes = strtoull(bytes.c_str(), nullptr, 0);
    for (std::string option; words >> option;) {
        const size_t equal = option.find('=');
        const std::string name = option.substr(0, equal);
        const std::string value = equal == std::string::npos ? "" : option.substr(equal + 1);
        if (name == "list" && (value == "compute" || value == "graphics" || value == "mps"))
            process.list = value;
        else if (name == "gi")
            process.gpu_instance = static_cast<uint32_t>(atoi(value.c_str()));
        else if (name == "ci")
            process.compute_instance = static_cast<uint32_t>(atoi(value.c_str()));
        else
            return false;
    }
    device.processes.push_back(process);
    return true;
}

// Replaces \xNN by the byte.
std::string unescaped(const std::string& text)
{
    std::string bytes;
    for (size_t i = 0; i < text.size(); i++)
        if (text.compare(i, 2, "\\x") == 0) {
            bytes += static_cast<char>(strtoul(text.substr(i + 2, 2).c_str(), nullptr, 16));
            i += 3;
        } else {
            bytes += text[i];
        }
    return bytes;
}

template<class... Numbers>
bool read_numbers(std::istringstream& words, Numbers&... numbers)
{
    return static_cast<bool>((words >> ... >> numbers));
}

// Parses the rest of a line that describes a device. Returns nullopt if `word` does not begin such a line.
std::optional<bool> read_figure(const std::string& word, std::istringstream& words, Device& device)
{
    if (word == "process")
        return read_process(words, device);
    if (word == "sample") {
        Sample& sample = device.samples.emplace_back();
        return read_pid(words, sample.pid) && read_numbers(words, sample.time_us, sample.sm);
    }
    if (word == "gpm") {
        uint32_t metric = 0, instance = none;
        std::string value, scope;
        const bool read = read_numbers(words, metric, value);
        if (words >> scope)
            instance = static_cast<uint32_t>(atoi(scope.c_str() + scope.find('=') + 1));
        device.gpm[instance][metric] = strtod(value.c_str(), nullptr);
        return read && (scope.empty() || scope.starts_with("gi="));
    }
    if (word == "instance") {
        Mig& mig = device.migs.emplace_back();
        return device.migs.size() <= max_instances &&
               read_numbers(words, mig.gpu_instance, mig.compute_instance, mig.slices, mig.uuid);
    }
    if (word == "name" || word == "uuid") {
        std::string text;
        std::getline(words >> std::ws, text);
        (word == "name" ? device.name : device.uuid) = unescaped(text);
        return true;
    }
    if (word == "pci") {
        Pci& pci = device.pci.emplace();
        words >> std::hex;
        return read_numbers(words, pci.domain, pci.bus, pci.device);
    }
    if (word == "memory") {
        Memory& memory = device.memory.emplace();
        return read_numbers(words, memory.total, memory.used, memory.reserved);
    }
    static const std::map<std::string, std::optional<uint32_t> Device::*> figures = {
        {"utilization", &Device::utilization},
        {"power", &Device::power},
        {"slices", &Device::slices},
        {"minor", &Device::minor},
        {"mig", &Device::mig}};
    if (const auto figure = figures.find(word); figure != figures.end())
        return read_numbers(words, (device.*figure->second).emplace());
    return std::nullopt;
}

bool read_line(const std::string& line, Answers& answers, unsigned& device)
{
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word, value;
    if (!(words >> word))
        return true;
    if (word == "driver") {
        words >> value;
        return sscanf(value.c_str(), "%d.%d.%d", &answers.driver[0], &answers.driver[1], &answers.driver[2]) >= 2;
    }
    if (word == "device") {
        if (!(words >> device) || device >= max_devices)
            return false;
        answers.devices[device];
        return true;
    }
    if (const auto found = answers.devices.find(device); found != answers.devices.end())
        if (const std::optional<bool> read = read_figure(word, words, found->second))
            return *read;
    if (word == "symbols") {
        words >> value;
        answers.newest = value == "v3" ? 3 : value == "v2" ? 2 : 1;
        return value == "v3" || value == "v2" || value == "none";
    }
    if (word == "fail") {
        int code = ok;
        if (!(words >> value))
            return false;
        if (value == "init")
            return static_cast<bool>(words >> answers.init);
        unsigned index = 0;
        if (!(words >> index >> code))
            return false;
        answers.devices[index].fails[value] = code;
        return queries.contains(value);
    }
    static const std::map<std::string, int64_t Answers::*> numbers = {
        {"element", &Answers::element}, {"grow", &Answers::grow}, {"claim", &Answers::claim}, {"need", &Answers::need}};
    if (const auto number = numbers.find(word); number != numbers.end())
        return static_cast<bool>(words >> answers.*number->second);
    if (word == "stale")
        return answers.stale = true;
    if (word == "hang")
        return answers.hang = true;
    return false;
}

Answers read_file()
{
    Answers answers;
    const char* const path = getenv("STANDIN_NVML");
    std::ifstream file(path ? path : "");
    if (!file) {
        answers.init = driver_not_loaded;
        return answers;
    }
    unsigned device = max_devices;
    for (std::string line; std::getline(file, line);)
        if (!read_line(line, answers, device)) {
            fprintf(stderr, "standin nvml: %s: cannot read: %s\n", path, line.c_str());
            answers.init = unknown;
            answers.good = false;
        }
    return answers;
}

} // namespace

Answers read_answers()
{
    Answers answers = read_file();
    for (; answers.hang; answers = read_file())
        usleep(10000);
    return answers;
}

const Mig* mig_of(const Answers& answers, const void* handle)
{
    const auto* const place = static_cast<const char*>(handle);
    if (place < &mig_handles[0][0] || place >= &mig_handles[0][0] + sizeof(mig_handles))
        return nullptr;
    const auto number = static_cast<size_t>(place - &mig_handles[0][0]);
    const auto device = answers.devices.find(static_cast<unsigned>(number / max_instances));
    if (device == answers.devices.end() || number % max_instances >= device->second.migs.size())
        return nullptr;
    return &device->second.migs[number % max_instances];
}
