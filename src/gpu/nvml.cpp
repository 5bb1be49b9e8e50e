// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#ifdef GPUSNOOP_STATIC

namespace gpusnoop {

std::unique_ptr<Nvml> Nvml::open(std::string& why, const NvmlPlaces&)
{
    why = "the static build cannot open NVML; the dynamically linked one can";
    return nullptr;
}

} // namespace gpusnoop

#else

#include "base/fd.hpp"
#include "gpu/nvml_device.hpp"
#include "gpu/nvml_samples.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <sys/stat.h>

namespace gpusnoop {
namespace {

constexpr unsigned max_devices = 256;

// Loads a file that only root can have written. The file is loaded through its descriptor, so that it cannot be
// replaced after the check.
void* open_safely(const std::string& path, std::string& why)
{
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0)
        return nullptr;
    if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH))) {
        why = fmt::format("{} is not used: it is not a file that only root can write", path);
        return nullptr;
    }
    void* const library = dlopen(fmt::format("/proc/self/fd/{}", file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (const char* const error = library ? nullptr : dlerror())
        why = fmt::format("{} cannot be opened: {}", path, error);
    return library;
}

// gpusnoop has no environment variable for the library's path, because it could make root load a user's file. The
// loader still respects LD_LIBRARY_PATH.
void* open_library(const NvmlPlaces& places, std::string& why)
{
    void* library = dlopen(places.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (const char* const error = library ? nullptr : dlerror())
        why = fmt::format("NVML cannot be opened: {}", error);
    if (places.library.find('/') == std::string::npos)
        for (auto folder = places.folders.begin(); !library && folder != places.folders.end(); ++folder)
            library = open_safely(fmt::format("{}/{}", *folder, places.library), why);
    return library;
}

struct LibraryCloser {
    void operator()(void* library) const { dlclose(library); }
};

class NvmlLibrary final : public Nvml {
public:
    explicit NvmlLibrary(void* library) : library_(library), symbols_(library), queries_(symbols_), gpm_(symbols_) {}
    NvmlLibrary(const NvmlLibrary&) = delete;
    NvmlLibrary& operator=(const NvmlLibrary&) = delete;
    ~NvmlLibrary() override
    {
        gpm_.end();
        if (started_)
            shutdown_();
    }

    bool start(std::string& why)
    {
        int (*init)() = nullptr;
        int (*count)(unsigned*) = nullptr;
        symbols_.find(error_text_, {"nvmlErrorString"});
        symbols_.find(samples_function_, {"nvmlDeviceGetProcessUtilization"});
        if (!symbols_.find(init, {"nvmlInit_v2", "nvmlInit"}) || !symbols_.find(shutdown_, {"nvmlShutdown"}) ||
            !symbols_.find(count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}) ||
            !symbols_.find(handle_, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}) || !find_lists()) {
            why = "the NVML library lacks functions: it is too old, or is not NVML";
            return false;
        }
        int code = init();
        started_ = code == NVML_OK;
        if (started_)
            code = count(&devices_);
        if (code != NVML_OK)
            why = fmt::format("NVML does not start: {}", text(code));
        devices_ = std::min(devices_, max_devices);
        samples_.resize(devices_);
        return code == NVML_OK;
    }

    unsigned devices() const override { return devices_; }
    const std::vector<NvmlFailure>& failures() const override { return failures_; }

    std::vector<NvmlProcess> processes() override
    {
        std::vector<NvmlProcess> all;
        failures_.clear();
        for (unsigned i = 0; i < devices_; i++)
            if (const int code = add_device(i, all); code != NVML_OK)
                failures_.push_back({i, text(code)});
        return all;
    }

    std::vector<NvmlDeviceState> states() override
    {
        std::vector<NvmlDeviceState> all(devices_);
        for (unsigned i = 0; i < devices_; i++) {
            NvmlDevice device = nullptr;
            all[i].index = i;
            if (handle_(i, &device) != NVML_OK)
                continue;
            all[i] = queries_.ask(i, device);
            if (!all[i].mig.value_or(false))
                all[i].efficiency = gpm_.since_last(device);
            for (NvmlInstance& instance : all[i].instances)
                instance.efficiency = gpm_.since_last(device, instance.gpu_instance);
        }
        return all;
    }

    std::vector<NvmlUse> process_use() override
    {
        std::vector<NvmlUse> all;
        for (unsigned i = 0; samples_function_ && i < devices_; i++) {
            NvmlDevice device = nullptr;
            if (handle_(i, &device) != NVML_OK)
                samples_[i] = {};
            else
                for (const auto& [pid, percent] : samples_[i].read(samples_function_, device))
                    all.push_back({pid, i, percent});
        }
        return all;
    }

private:
    using Instance = std::pair<uint32_t, uint32_t>;

    // Finds the functions that return process lists. Prefers _v2, whose layout has never changed, to the newer _v3,
    // which reports nothing more. Only the list of compute processes is required.
    bool find_lists()
    {
        for (const std::string_view list : {"Compute", "Graphics", "MPSCompute"}) {
            auto& variants = lists_.emplace_back();
            for (const std::string_view suffix : {"_v2", "_v3", ""}) {
                NvmlListFunction function = nullptr;
                if (symbols_.find(function, {fmt::format("nvmlDeviceGet{}RunningProcesses{}", list, suffix).c_str()}))
                    variants.push_back({function, suffix.empty() ? nvml_small_element : sizeof(NvmlElement)});
            }
        }
        return !lists_.front().empty();
    }

    // Tries the variants in order, because the driver may not support every function of the library.
    static std::vector<NvmlElement> read_newest(const std::vector<NvmlList>& variants, NvmlDevice device, int& code)
    {
        std::vector<NvmlElement> elements;
        code = NVML_FUNCTION_NOT_FOUND;
        for (auto variant = variants.begin(); code == NVML_FUNCTION_NOT_FOUND && variant != variants.end(); ++variant)
            elements = read_nvml_list(*variant, device, code);
        return elements;
    }

    static NvmlProcess summed_up(uint32_t pid, unsigned device,
                                 const std::map<Instance, std::optional<uint64_t>>& instances)
    {
        NvmlProcess process{pid, device, 0, {}, {}};
        unsigned with_mig = 0;
        for (const auto& [instance, bytes] : instances) {
            process.bytes = process.bytes && bytes ? std::optional(*process.bytes + *bytes) : std::nullopt;
            if (instance == Instance{nvml_no_instance, nvml_no_instance})
                continue; // the element comes from a list without instances
            const auto id = [&](uint32_t value) {
                return with_mig == 0 && nvml_has_instance(value) ? std::optional(value) : std::nullopt;
            };
            process.gpu_instance = id(instance.first);
            process.compute_instance = id(instance.second);
            with_mig++;
        }
        return process;
    }

    // Adds the processes of one device. Returns NVML_OK if the list is complete, otherwise the error of NVML.
    int add_device(unsigned index, std::vector<NvmlProcess>& all) const
    {
        NvmlDevice device = nullptr;
        if (const int code = handle_(index, &device); code != NVML_OK)
            return code;
        // Each list contains the processes with one kind of context, but reports all memory of such a process.
        // Therefore, take the maximum of the sizes in the lists; an unknown size counts as the smallest. Add up the
        // sizes on different MIG instances, because their memory is separate.
        std::map<uint32_t, std::map<Instance, std::optional<uint64_t>>> held;
        int failed = NVML_OK, lacking = NVML_OK;
        bool answered = false;
        for (const auto& variants : lists_) {
            int code = NVML_OK;
            for (const NvmlElement& element : read_newest(variants, device, code)) {
                auto& bytes = held[element.pid][{element.gpu_instance, element.compute_instance}];
                if (element.bytes != ~uint64_t{0})
                    bytes = std::max(bytes, std::optional(element.bytes));
            }
            answered = answered || code == NVML_OK;
            int& why = code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND ? lacking : failed;
            if (why == NVML_OK)
                why = code;
        }
        for (const auto& [pid, instances] : held)
            all.push_back(summed_up(pid, index, instances));
        return failed != NVML_OK || answered ? failed : lacking;
    }

    std::string text(int code) const
    {
        if (code == NVML_UNREADABLE)
            return "the layout of NVML's process list is unknown";
        const char* const name = error_text_ ? error_text_(code) : nullptr;
        return fmt::format("{} (error {})", name ? name : "unknown", code);
    }

    std::unique_ptr<void, LibraryCloser> library_;
    NvmlSymbols symbols_;
    NvmlDeviceQueries queries_;
    NvmlGpm gpm_;
    NvmlSamplesFunction samples_function_ = nullptr;
    std::vector<NvmlSamples> samples_; // by device
    const char* (*error_text_)(int) = nullptr;
    int (*shutdown_)() = nullptr;
    int (*handle_)(unsigned, NvmlDevice*) = nullptr;
    std::vector<std::vector<NvmlList>> lists_; // for each kind of process list, the variants of its function in the
                                               // order in which they are tried
    bool started_ = false;
    unsigned devices_ = 0;
    std::vector<NvmlFailure> failures_;
};

} // namespace

std::unique_ptr<Nvml> Nvml::open(std::string& why, const NvmlPlaces& places)
{
    void* const opened = open_library(places, why);
    if (!opened)
        return nullptr;
    auto library = std::make_unique<NvmlLibrary>(opened);
    if (!library->start(why))
        return nullptr;
    return library;
}

} // namespace gpusnoop

#endif

namespace gpusnoop {

namespace {

using Bytes = std::span<const unsigned char>;

NvmlElement element_at(Bytes room, size_t index, size_t size)
{
    NvmlElement element{0, 0, 0, nvml_no_instance, nvml_no_instance};
    memcpy(&element, room.data() + index * size, std::min(size, sizeof(element)));
    return element;
}

bool plausible(Bytes room, unsigned count, size_t size)
{
    const auto id = [](uint32_t value) { return nvml_has_instance(value) || value == nvml_no_instance; };
    for (unsigned i = 0; i < count; i++) {
        const NvmlElement element = element_at(room, i, size);
        if (!nvml_has_pid(element.pid) || !id(element.gpu_instance) || !id(element.compute_instance))
            return false;
    }
    return true;
}

// Byte that fills the buffer before a call, to find out how much the call writes. No element ends with this byte,
// because the top byte of every size and id is smaller.
constexpr unsigned char unwritten = 0xa5;

// Returns the size of a list element in bytes; 0 if it cannot be determined. The size is derived from the number of
// bytes written, because the function's name and version do not determine it. Elements of _v3 had 32 bytes from driver
// 535.43.02 to 535.86.05, but 24 before 535.43.02 and again from 535.104.05 on. Users have also reported 24 bytes
// instead of 16 for the unsuffixed function that lists MPS clients, and 16 bytes for _v3 in a container (550.127.08).
size_t measure(Bytes room, unsigned count, unsigned capacity, size_t documented)
{
    const auto last = std::find_if(room.rbegin(), room.rend(), [](unsigned char byte) { return byte != unwritten; });
    const auto written = static_cast<size_t>(room.rend() - last);
    for (const size_t size : {nvml_small_element, sizeof(NvmlElement), nvml_large_element}) {
        // The last 8 bytes may be unwritten.
        const bool fits = written == count * size || (size > nvml_small_element && written == count * size - 8);
        if (fits && (size == documented || plausible(room, count, size)))
            return size;
    }
    // No size fits the bytes written, perhaps because the function wrote more than `count` elements. Only the
    // documented size is accepted then.
    return written <= capacity * documented && plausible(room, count, documented) ? documented : 0;
}

} // namespace

std::vector<NvmlElement> read_nvml_list(const NvmlList& list, NvmlDevice device, int& code)
{
    std::vector<unsigned char> room;
    unsigned capacity = 0; // the first call returns only the count, and the second fills the buffer
    for (int i = 0; i < nvml_max_tries; i++) {
        // Add one element, because some functions write too much.
        room.assign((capacity + size_t{1}) * nvml_large_element, unwritten);
        unsigned count = capacity;
        code = list.function(device, &count, capacity ? room.data() : nullptr);
        if (code == NVML_INSUFFICIENT_SIZE) {
            if (capacity >= nvml_max_room)
                return {};
            capacity = nvml_more_room(capacity, count);
            continue;
        }
        if (code != NVML_OK || count == 0)
            return {};
        const size_t size = count <= capacity ? measure(room, count, capacity, list.element) : 0;
        if (size == 0) {
            code = NVML_UNREADABLE; // the next try may succeed: a process may have exited while the list was read
            capacity = 0;
            continue;
        }
        std::vector<NvmlElement> elements;
        for (unsigned k = 0; k < count; k++)
            if (const NvmlElement element = element_at(room, k, size); nvml_has_pid(element.pid))
                elements.push_back(element);
        return elements;
    }
    return {};
}

} // namespace gpusnoop
