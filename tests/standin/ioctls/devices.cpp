// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include "../workload/script.hpp"
#include "truth.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <vector>

namespace ioctls {
namespace {

std::mutex lock;
std::map<std::string, std::vector<int>> files;

// Returns the major number of a loaded driver to which the kernel assigns one dynamically.
unsigned dynamic_major(const std::string& driver)
{
    std::ifstream in("/proc/devices");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        unsigned number;
        std::string name;
        if (words >> number >> name && name == driver)
            return number;
    }
    workload::fail("no " + driver + " in /proc/devices");
}

dev_t number_of(const std::string& name)
{
    if (name == "nvidiactl")
        return makedev(195, 255);
    if (name == "nvidia-modeset")
        return makedev(195, 254);
    if (name == "nvidia-uvm" || name == "nvidia-uvm-tools")
        return makedev(dynamic_major("nvidia-uvm"), name == "nvidia-uvm" ? 0 : 1);
    if (name.starts_with("nvidia-cap"))
        return makedev(dynamic_major("nvidia-caps"), 1);
    if (name == "kfd")
        return makedev(dynamic_major("kfd"), 0);
    if (name == "renderD128")
        return makedev(226, 128);
    if (name == "null")
        return makedev(1, 3);
    if (name.starts_with("nvidia") && name.find_first_not_of("0123456789", 6) == std::string::npos && name.size() > 6)
        return makedev(195, static_cast<unsigned>(std::stoul(name.substr(6))));
    workload::fail("no device named " + name);
}

// Opens a device through a temporary device node, which is removed at once.
int open_node(const std::string& name, int flags)
{
    static int number;
    dev_t device = number_of(name);
    std::string path = std::filesystem::temp_directory_path() /
                       (name + "-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    if (mknod(path.c_str(), S_IFCHR | 0600, device))
        workload::fail("cannot make " + path + ": run as root, on a mount that allows device nodes");
    int fd = open(path.c_str(), flags | O_CLOEXEC);
    int error = errno;
    unlink(path.c_str());
    errno = error;
    return fd;
}

int new_file(const std::string& name)
{
    if (name == "pipe") {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC))
            workload::fail("no pipe");
        return ends[0];
    }
    bool path_only = name != "null" && !have_driver();
    return open_node(name, path_only ? O_PATH : O_RDWR);
}

} // namespace

bool have_driver()
{
    static const bool have = access("/sys/module/nvidia/parameters/standin", F_OK) == 0;
    return have;
}

int open_device(const std::string& name)
{
    std::lock_guard guard(lock);
    int fd = new_file(name), error = fd < 0 ? errno : 0;
    record_file("open", name, error, have_driver());
    if (fd >= 0)
        files[name].push_back(fd);
    return error;
}

int device(const std::string& name)
{
    {
        std::lock_guard guard(lock);
        if (!files[name].empty())
            return files[name].back();
    }
    if (int error = open_device(name))
        workload::fail("cannot open " + name + ": " + std::to_string(error));
    std::lock_guard guard(lock);
    return files[name].back();
}

int close_device(const std::string& name)
{
    std::lock_guard guard(lock);
    auto& opened = files[name];
    if (opened.empty())
        return EBADF;
    int error = close(opened.back()) ? errno : 0;
    opened.pop_back();
    record_file("close", name, error, have_driver());
    return error;
}

int map_device(const std::string& name, uint64_t bytes)
{
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device(name), 0);
    int error = address == MAP_FAILED ? errno : 0;
    record_mapping(name, bytes, error, have_driver());
    if (!error)
        munmap(address, bytes);
    return error;
}

void forget_devices()
{
    for (auto& [name, opened] : files)
        for (int fd : opened)
            close(fd);
    files.clear();
}

void close_devices()
{
    for (auto& [name, opened] : files)
        while (!opened.empty())
            close_device(name);
}

} // namespace ioctls
