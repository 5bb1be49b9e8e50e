// SPDX-License-Identifier: Apache-2.0
// What packs a file that is written bit by bit.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace gpusnoop {

// What is packed up to now can be unpacked, whether the rest comes or not.
class Packer {
public:
    Packer() = default;
    virtual ~Packer() = default;
    Packer(const Packer&) = delete;
    Packer& operator=(const Packer&) = delete;

    virtual std::string packed(std::string_view text) = 0;
    virtual std::string end() = 0; // afterwards it begins anew

    virtual std::string_view name() const = 0;
    virtual std::string_view magic() const = 0; // what all that it packs begins with
};

// By the end of the file's name, .gz or .zst. Null: plain.
std::unique_ptr<Packer> packer_for(std::string_view path);

} // namespace gpusnoop
