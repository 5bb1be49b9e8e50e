// SPDX-License-Identifier: Apache-2.0
#include "who/container_lookup.hpp"

#include "reader/reader.hpp"
#include "who/container_messages.hpp"

namespace gpusnoop {
namespace {

constexpr uint64_t memory_bytes = 128 << 20;
constexpr size_t answers_max = 4096; // that nobody has taken

void serve(Helper::Task& task, const std::string& host_root)
{
    confine_reader(memory_bytes);
    const Containers containers(host_root);
    while (const auto message = task.connection.receive()) {
        const auto owner = read_message<CgroupOwner>(message->bytes);
        if (!owner)
            return;
        task.says("what is on disk about container " + owner->container_id);
        if (!task.connection.send(message_of(ContainerAnswer{*owner, containers.find(*owner)})))
            return;
    }
}

} // namespace

ContainerLookup::ContainerLookup(const std::string& host_root, WaitBudget* waits)
    : helper_({.serve = [host_root](Helper::Task& task) { serve(task, host_root); },
               .take = [this](const Message& message) { return take(message); },
               .consequence = "names of containers and pods may be missing"},
              waits)
{}

std::optional<ContainerNames> ContainerLookup::find(const CgroupOwner& owner)
{
    const Key key(owner.container_id, owner.pod_uid);
    helper_.hear();
    if (!answers_.contains(key))
        helper_.ask(0, message_of(owner));
    auto answer = answers_.extract(key);
    return answer ? std::optional(std::move(answer.mapped())) : std::nullopt;
}

bool ContainerLookup::take(const Message& message)
{
    auto answer = read_message<ContainerAnswer>(message.bytes);
    if (!answer)
        return false;
    if (answers_.size() < answers_max)
        answers_.insert_or_assign({answer->of.container_id, answer->of.pod_uid}, std::move(answer->names));
    return true;
}

} // namespace gpusnoop
