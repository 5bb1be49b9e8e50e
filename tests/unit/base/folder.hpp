// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <sys/stat.h>

namespace gpusnoop {

// A temporary folder, removed by the destructor. Methods that create something also create the folders above it. All
// return the path.
class Folder {
public:
    Folder() { REQUIRE(mkdtemp(path_.data())); }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    std::string file(const std::string& name, const std::string& text) const
    {
        std::ofstream(create(name), std::ios::binary) << text;
        return file(name);
    }
    std::string link(const std::string& name, const std::string& target) const
    {
        std::filesystem::create_symlink(target, create(name));
        return file(name);
    }
    std::string fifo(const std::string& name) const
    {
        REQUIRE(mkfifo(create(name).c_str(), 0600) == 0);
        return file(name);
    }
    std::string folder(const std::string& name) const { return create(name + "/"); }

private:
    std::string create(const std::string& name) const
    {
        std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
        return file(name);
    }

    std::string path_ = "/tmp/gpusnoop-unit-XXXXXX";
};

inline std::string contents(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace gpusnoop
