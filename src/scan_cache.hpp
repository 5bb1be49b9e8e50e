// SPDX-License-Identifier: Apache-2.0
// What scans have found, kept on disk by build-id. Nobody else may write there; what is read is checked all the same, and
// each entry once more against the file it is about (registered_name()).
#pragma once

#include "fd.hpp"
#include "registrations.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

class ScanCache {
public:
    // Makes the folder where there is none. Without a cache (empty path), or where the folder is not ours alone, nothing
    // is found and nothing kept.
    explicit ScanCache(const std::string& folder);

    // $CACHE_DIRECTORY (systemd), else /var/cache/gpusnoop for root, else $XDG_CACHE_HOME/gpusnoop or ~/.cache/gpusnoop.
    static std::string default_folder();

    std::optional<Registrations> find(std::string_view build_id, uint64_t file_size) const;
    void keep(std::string_view build_id, uint64_t file_size, const Registrations& registrations) const;

    static constexpr uint64_t size_max = 64 << 20; // bytes in the folder: the oldest go

private:
    void make_room(uint64_t bytes) const;

    Fd folder_;
};

} // namespace gpusnoop
