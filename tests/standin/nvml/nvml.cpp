// SPDX-License-Identifier: Apache-2.0
// A management library that answers what a file says. README.md has the lines of that file.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// nvmlReturn_t
enum Result {
    ok = 0,
    uninitialized = 1,
    invalid_argument = 2,
    not_supported = 3,
    insufficient_size = 7,
    driver_not_loaded = 9,
    function_not_found = 13,
    gpu_is_lost = 15,
    version_mismatch = 18,
    unknown = 999
};

constexpr uint32_t none = ~0u;
constexpr int max_devices = 64;

struct Process {
    std::string list;
    uint32_t pid;
    uint64_t bytes; // all ones: unknown
    uint32_t gpu_instance, compute_instance;
};

struct Device {
    std::map<std::string, int> fails; // by list, or "device"
    std::vector<Process> processes;
};

// One file.
struct Answers {
    int driver[3] = {550, 54, 15};
    int newest = 3; // suffix of the lists
    int init = ok;
    unsigned element = 0, grow = 0;
    int64_t claim = -1;
    std::map<unsigned, Device> devices;
    bool good = true;

    bool wrong_stride() const // from 535.43.02 to 535.86.05
    {
        return driver[0] == 535 && driver[1] >= 43 && driver[1] <= 86;
    }
};

// Of this process, between nvmlInit and nvmlShutdown.
int opened;
unsigned list_calls;
char handles[max_devices];

bool read_process(std::istringstream& words, Device& device)
{
    Process process{"compute", 0, ~uint64_t{0}, none, none};
    std::string bytes;
    if (!(words >> process.pid >> bytes))
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
    if (word == "process")
        return answers.devices.contains(device) && read_process(words, answers.devices[device]);
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
        return value == "device" || value == "compute" || value == "graphics" || value == "mps";
    }
    if (word == "element")
        return static_cast<bool>(words >> answers.element);
    if (word == "grow")
        return static_cast<bool>(words >> answers.grow);
    if (word == "claim")
        return static_cast<bool>(words >> answers.claim);
    return false;
}

Answers read_answers()
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

// The elements of all layouts: each is the beginning of this one.
struct Element {
    uint32_t pid;
    uint32_t padding;
    uint64_t bytes;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_bytes;
};
static_assert(sizeof(Element) == 32);

int list(const char* name, int suffix, void* handle, unsigned* count, void* infos)
{
    if (!opened)
        return uninitialized;
    const Answers answers = read_answers();
    const char* const place = static_cast<char*>(handle);
    if (place < handles || place >= handles + max_devices || !count)
        return invalid_argument;
    const auto device = answers.devices.find(static_cast<unsigned>(place - handles));
    if (device == answers.devices.end() || !answers.good)
        return gpu_is_lost;
    if (suffix > answers.newest)
        return function_not_found;
    if (const auto fails = device->second.fails.find(name); fails != device->second.fails.end())
        return fails->second;

    std::vector<Process> found;
    for (const Process& process : device->second.processes)
        if (process.list == name)
            found.push_back(process);
    if (strcmp(name, "compute") == 0)
        for (unsigned i = 0, more = answers.grow * list_calls++; i < more; i++)
            found.push_back({name, 100000 + i, 4096, none, none});

    const unsigned room = *count;
    *count = static_cast<unsigned>(found.size());
    if (room < found.size())
        return insufficient_size;
    if (!infos && room > 0)
        return invalid_argument;
    const size_t size = answers.element                         ? answers.element
                        : suffix == 1                           ? 16
                        : suffix == 3 && answers.wrong_stride() ? 32
                                                                : 24;
    for (size_t i = 0; i < found.size(); i++) {
        const Process& process = found[i];
        // What is behind the 24 bytes looks like a pid, for those that read with the wrong stride.
        const Element element{process.pid, 0, process.bytes, process.gpu_instance, process.compute_instance, 4242};
        memcpy(static_cast<char*>(infos) + i * size, &element, size < sizeof(element) ? size : sizeof(element));
    }
    if (answers.claim >= 0)
        *count = static_cast<unsigned>(answers.claim);
    return ok;
}

int init()
{
    const int result = read_answers().init;
    if (result == ok && opened++ == 0)
        list_calls = 0;
    return result;
}

int device_count(unsigned* count)
{
    if (!opened)
        return uninitialized;
    const Answers answers = read_answers();
    *count = answers.devices.empty() ? 0 : answers.devices.rbegin()->first + 1;
    return ok;
}

int device_handle(unsigned index, void** handle)
{
    if (!opened)
        return uninitialized;
    const Answers answers = read_answers();
    const auto device = answers.devices.find(index);
    if (device == answers.devices.end())
        return invalid_argument;
    if (const auto fails = device->second.fails.find("device"); fails != device->second.fails.end())
        return fails->second;
    *handle = &handles[index];
    return ok;
}

} // namespace

EXPORT int nvmlInit()
{
    return init();
}
EXPORT int nvmlInit_v2()
{
    return init();
}
EXPORT int nvmlShutdown()
{
    return opened > 0 ? opened--, ok : uninitialized;
}
EXPORT int nvmlDeviceGetCount(unsigned* count)
{
    return device_count(count);
}
EXPORT int nvmlDeviceGetCount_v2(unsigned* count)
{
    return device_count(count);
}
EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void** handle)
{
    return device_handle(index, handle);
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle)
{
    return device_handle(index, handle);
}

EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned length)
{
    const Answers answers = read_answers();
    const int written =
        snprintf(version, length, "%d.%02d.%02d", answers.driver[0], answers.driver[1], answers.driver[2]);
    return written < static_cast<int>(length) ? ok : insufficient_size;
}

EXPORT const char* nvmlErrorString(int result)
{
    switch (result) {
    case ok:
        return "Success";
    case not_supported:
        return "Not Supported";
    case driver_not_loaded:
        return "Driver Not Loaded";
    case gpu_is_lost:
        return "GPU is lost";
    case version_mismatch:
        return "Driver/library version mismatch";
    default:
        return "Unknown Error";
    }
}

#define LISTS(function, name)                                                                                          \
    EXPORT int function(void* device, unsigned* count, void* infos)                                                    \
    {                                                                                                                  \
        return list(name, 1, device, count, infos);                                                                    \
    }                                                                                                                  \
    EXPORT int function##_v2(void* device, unsigned* count, void* infos)                                               \
    {                                                                                                                  \
        return list(name, 2, device, count, infos);                                                                    \
    }                                                                                                                  \
    EXPORT int function##_v3(void* device, unsigned* count, void* infos)                                               \
    {                                                                                                                  \
        return list(name, 3, device, count, infos);                                                                    \
    }

LISTS(nvmlDeviceGetComputeRunningProcesses, "compute")
LISTS(nvmlDeviceGetGraphicsRunningProcesses, "graphics")
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, "mps")
