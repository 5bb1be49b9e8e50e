// SPDX-License-Identifier: Apache-2.0
#include "attach/known_files.hpp"

#include "proc/process.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gpusnoop {

namespace {

constexpr size_t useless_max = 1 << 17;

} // namespace

CudaFile* KnownFiles::find(const FileId& id) const
{
    const auto file = files_.find(id);
    return file == files_.end() ? nullptr : file->second.get();
}

CudaFile* KnownFiles::by_number(uint32_t number) const
{
    const auto file =
        std::ranges::find_if(files_, [number](const auto& item) { return item.second->number == number; });
    return file == files_.end() ? nullptr : file->second.get();
}

std::vector<CudaFile*> KnownFiles::all() const
{
    std::vector<CudaFile*> all;
    for (const auto& [id, file] : files_)
        all.push_back(file.get());
    return all;
}

bool KnownFiles::has_room(pid_t pid, uint64_t owner)
{
    const auto count = [this](auto matches) {
        return static_cast<size_t>(
            std::ranges::count_if(files_, [&](const auto& entry) { return matches(*entry.second); }));
    };
    if (files_.size() >= files_max) {
        if (limits_reported_.emplace(false, 0).second)
            complaints_.add(fmt::format(
                "{} CUDA libraries are traced, which is the limit; others are not traced while these are in use",
                files_max));
        return false;
    }
    if (count([pid](const CudaFile& file) { return file.users.contains(pid); }) >= files_of_process_max) {
        if (limits_reported_.emplace(false, pid).second)
            complaints_.add(fmt::format("process {} maps more than {} CUDA libraries: the others are not traced", pid,
                                        files_of_process_max));
        return false;
    }
    if (count([owner](const CudaFile& file) { return file.owner == owner; }) >= files_of_owner_max) {
        if (limits_reported_.emplace(true, owner).second)
            complaints_.add(
                fmt::format("the user of process {} maps more than {} CUDA libraries: the others are not traced", pid,
                            files_of_owner_max));
        return false;
    }
    return true;
}

CudaFile& KnownFiles::add(std::unique_ptr<CudaFile> file)
{
    file->number = ++numbers_;
    const FileId id = file->id;
    return *files_.emplace(id, std::move(file)).first->second;
}

void KnownFiles::drop(CudaFile* file)
{
    idle_.erase(file);
    dropped_++;
    files_.erase(FileId(file->id));
}

bool KnownFiles::move(CudaFile* file, const FileId& id)
{
    if (files_.contains(id))
        return false;
    auto entry = files_.extract(FileId(file->id));
    entry.key() = file->id = id;
    files_.insert(std::move(entry));
    dropped_++;
    return true;
}

std::vector<CudaFile*> KnownFiles::idle()
{
    std::vector<CudaFile*> still_idle;
    for (auto& [id, file] : files_) {
        std::erase_if(file->users, [](pid_t pid) { return !is_alive(pid); });
        if (!file->users.empty())
            idle_.erase(file.get());
        else if (!idle_.insert(file.get()).second)
            still_idle.push_back(file.get());
    }
    return still_idle;
}

void KnownFiles::add_useless(const Version& version)
{
    if (useless_.size() >= useless_max)
        useless_.clear();
    useless_.insert(version);
}

} // namespace gpusnoop
