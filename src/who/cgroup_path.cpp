// SPDX-License-Identifier: Apache-2.0
#include "who/cgroup_path.hpp"

#include "base/text.hpp"
#include "who/container_runtimes.hpp"

#include <algorithm>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t id_digits = 64;
constexpr size_t static_pod_digits = 32;
constexpr size_t max_name = 255; // NAME_MAX, the longest name of a cgroup

bool consume_prefix(std::string_view& text, std::string_view prefix)
{
    if (!text.starts_with(prefix))
        return false;
    text.remove_prefix(prefix.size());
    return true;
}

bool consume_suffix(std::string_view& text, std::string_view suffix)
{
    if (!text.ends_with(suffix))
        return false;
    text.remove_suffix(suffix.size());
    return true;
}

bool all_digits(std::string_view text)
{
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_hex(std::string_view text, size_t digits)
{
    return text.size() == digits && std::ranges::all_of(text, [](char c) { return is_hex(c); });
}

bool is_uuid(std::string_view text, char separator)
{
    constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    return std::ranges::equal(text, shape, [&](char c, char s) { return s == '-' ? c == separator : is_hex(c); });
}

// The id of a container in an ECS task on Fargate: 32 hex digits for the task, a dash, and a number.
bool is_fargate_id(std::string_view text)
{
    constexpr size_t task_digits = 32;
    constexpr size_t longest_number = 20;
    return text.size() > task_digits + 1 && text.size() <= task_digits + 1 + longest_number &&
           is_hex(text.substr(0, task_digits), task_digits) && text[task_digits] == '-' &&
           all_digits(text.substr(task_digits + 1));
}

struct Container {
    std::string_view runtime;
    std::string_view id;
};

using RuntimeNames = decltype(ContainerRuntime::prefixes) ContainerRuntime::*;

// The runtime whose list contains `name`; empty if there is none.
std::string_view runtime_by(RuntimeNames names, std::string_view name)
{
    for (const ContainerRuntime& runtime : container_runtimes)
        if (!name.empty() && std::ranges::find(runtime.*names, name) != (runtime.*names).end())
            return runtime.name;
    return {};
}

std::optional<Container> container_of(std::string_view name, std::string_view parent)
{
    // If a cgroup is configured in systemd's notation, slice:prefix:id, the cgroupfs driver uses this whole text as its
    // name.
    const size_t colon = name.rfind(':');
    if (colon != std::string_view::npos) {
        const std::string_view id = name.substr(colon + 1);
        const std::string_view before = name.substr(0, colon);
        const size_t slice_end = before.rfind(':');
        if (slice_end == std::string_view::npos || !is_hex(id, id_digits))
            return std::nullopt;
        return Container{runtime_by(&ContainerRuntime::prefixes, before.substr(slice_end + 1)), id};
    }

    const bool scope = consume_suffix(name, ".scope");
    if (is_fargate_id(name) && !scope)
        return Container{"", name};
    if (name.size() < id_digits)
        return std::nullopt;
    const std::string_view id = name.substr(name.size() - id_digits);
    std::string_view prefix = name.substr(0, name.size() - id_digits);
    if (!is_hex(id, id_digits))
        return std::nullopt;
    if (prefix.empty()) // below libpod_parent, the id may be that of a podman pod instead of a container
        return parent == "libpod_parent" ? std::nullopt
                                         : std::optional(Container{runtime_by(&ContainerRuntime::parents, parent), id});
    // conmon, the monitor of a container, runs on the host, not in the container.
    if (!consume_suffix(prefix, "-") || prefix.ends_with("conmon"))
        return std::nullopt;
    const std::string_view runtime = runtime_by(&ContainerRuntime::prefixes, prefix);
    // The creator of a systemd scope can choose any prefix. For other cgroups, only known prefixes are accepted.
    return scope || !runtime.empty() ? std::optional(Container{runtime, id}) : std::nullopt;
}

// Returns the uid in podUID or [...]kubepods[-qos]-podUID.slice. Text from a colon on is ignored. In the name of a
// slice, the uid has underscores instead of dashes, because systemd uses dashes to nest slices.
std::string pod_of(std::string_view name)
{
    name = name.substr(0, name.find(':'));
    if (consume_suffix(name, ".slice")) {
        const size_t dash = name.rfind("-pod");
        if (dash == std::string_view::npos)
            return {};
        name.remove_prefix(dash + 1);
    }
    if (!consume_prefix(name, "pod"))
        return {};
    if (!is_uuid(name, '-') && !is_uuid(name, '_') && !is_hex(name, static_pod_digits))
        return {};
    std::string uid(name);
    std::ranges::replace(uid, '_', '-');
    return uid;
}

bool is_unit(std::string_view name)
{
    return (consume_suffix(name, ".service") || consume_suffix(name, ".scope")) && !name.empty();
}

// True for Slurm's own cgroup: slurmstepd.scope (v2) or slurm (v1). If a machine runs several Slurm nodes, the names
// are NODE_slurmstepd.scope and slurm_NODE.
bool starts_slurm(std::string_view name)
{
    return name == "slurm" || name.starts_with("slurm_") || name == "slurmstepd.scope" ||
           name.ends_with("_slurmstepd.scope");
}

// Examples: "1234", "1234_7" in an array, "1234+1" in a heterogeneous job.
bool is_slurm_job(std::string_view text)
{
    return !text.empty() && all_digits(text.substr(0, 1)) &&
           text.find_first_not_of("0123456789_+.") == std::string_view::npos;
}

// Slurm's unique job id, which replaces "job_N" since Slurm 26.05 (de2b2dd9189d) unless CgroupJobIdPaths=yes. The id is
// an "s" and 13 digits of Crockford's base 32. The first digit has only four bits (print_sluid() in sluid.c).
bool is_sluid(std::string_view text)
{
    return text.size() == 14 && text[0] == 's' && text[1] <= 'F' &&
           text.find_first_not_of("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 1) == std::string_view::npos;
}

bool is_slurm_step(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_+.") == std::string_view::npos;
}

// True if a cgroup with this name belongs to a kubelet or its pods. Inside a container, such a cgroup shows that the
// container is a Kubernetes node.
bool is_kubelet(std::string_view name)
{
    return name == "kubelet" || name == "kubelet.slice" || name == "kubepods" || name == "kubepods.slice";
}

std::optional<uint32_t> user_of(std::string_view name, std::string_view prefix, std::string_view suffix)
{
    return consume_prefix(name, prefix) && consume_suffix(name, suffix) ? parse_number<uint32_t>(name) : std::nullopt;
}

// Interprets the names of a path, from the root down.
class PathReader {
public:
    explicit PathReader(bool nodes) : nodes_(nodes) {}

    void read(std::string_view name, std::string_view parent);
    // Call before the first name that a user has chosen is passed to read(). uid: see Delegation.
    void delegate_to(std::optional<uint32_t> uid);
    CgroupOwner extract();

private:
    bool read_container(std::string_view name, std::string_view parent);
    void read_slurm(std::string_view name);
    void read_of_host(std::string_view name, std::string_view parent);
    void read_of_user(std::string_view name, std::string_view parent);
    void read_of_node(std::string_view name, std::string_view parent);

    // Author of the names in the rest of the path: the host (root), a user, a container, or a Kubernetes node in a
    // container. Names chosen by a container are ignored.
    enum class By : uint8_t { host, user, container, node };

    bool nodes_; // see Delegation
    By by_ = By::host;
    CgroupOwner owner_;
    std::optional<uint32_t> user_; // uid of the author if by_ is By::user; nullopt: unknown
    bool has_units_ = false;       // user_ runs a systemd instance, which creates units
    std::string uuid_;             // id of a container of Garden or Mesos, or of an ECS task
    std::string pod_of_node_;
    bool in_kubelet_ = false; // below the cgroup of a containerized node's kubelet
    bool in_slurm_ = false;   // below Slurm's own cgroup
};

bool PathReader::read_container(std::string_view name, std::string_view parent)
{
    const auto container = container_of(name, parent);
    if (!container)
        return false;
    owner_.container_id = container->id;
    owner_.runtime = container->runtime;
    return true;
}

void PathReader::read_slurm(std::string_view name)
{
    if (starts_slurm(name)) {
        in_slurm_ = true;
        return;
    }
    if (!in_slurm_)
        return;
    if (owner_.slurm_job.empty()) {
        if (is_sluid(name) || (consume_prefix(name, "job_") && is_slurm_job(name)))
            owner_.slurm_job = name;
        else if (!owner_.uid && consume_prefix(name, "uid_"))
            owner_.uid = parse_number<uint32_t>(name);
    } else if (owner_.slurm_step.empty() && consume_prefix(name, "step_") && is_slurm_step(name)) {
        owner_.slurm_step = name;
    }
}

void PathReader::read_of_host(std::string_view name, std::string_view parent)
{
    if (auto pod = pod_of(name); owner_.pod_uid.empty() && !pod.empty())
        owner_.pod_uid = std::move(pod);
    if (read_container(name, parent)) {
        by_ = nodes_ && owner_.pod_uid.empty() ? By::node : By::container;
        return;
    }
    if (is_uuid(name, '-'))
        uuid_ = name;
    if (is_unit(name))
        owner_.unit = name;
    read_slurm(name);
    if (!owner_.uid)
        owner_.uid = user_of(name, "user-", ".slice");
    if (const auto user = user_of(name, "user@", ".service"); user && *user != 0 && user == owner_.uid) {
        has_units_ = true;
        delegate_to(user);
    }
}

void PathReader::read_of_user(std::string_view name, std::string_view parent)
{
    if (read_container(name, parent))
        by_ = By::container;
    else if (has_units_ && is_unit(name))
        owner_.unit = name;
    else
        return;
    owner_.named_by_user = true;
    owner_.uid = user_;
}

void PathReader::read_of_node(std::string_view name, std::string_view parent)
{
    if (!std::exchange(in_kubelet_, true) && !is_kubelet(name)) {
        by_ = By::container;
        return;
    }
    if (pod_of_node_.empty())
        pod_of_node_ = pod_of(name);
    std::string node = owner_.container_id;
    if (pod_of_node_.empty() || !read_container(name, parent))
        return;
    by_ = By::container;
    owner_.node_id = std::move(node);
    owner_.pod_uid = std::move(pod_of_node_);
}

void PathReader::read(std::string_view name, std::string_view parent)
{
    if (name.size() > max_name)
        return;
    switch (by_) {
    case By::host:
        return read_of_host(name, parent);
    case By::user:
        return read_of_user(name, parent);
    case By::node:
        return read_of_node(name, parent);
    case By::container:
        break;
    }
}

void PathReader::delegate_to(std::optional<uint32_t> uid)
{
    if (by_ == By::user)
        return;
    // Cgroups that users create inside of a container, pod or job are part of it.
    const bool owned = by_ != By::host || !owner_.pod_uid.empty() || !owner_.slurm_job.empty();
    by_ = !owned && uid ? By::user : By::container;
    user_ = uid;
}

CgroupOwner PathReader::extract()
{
    if (owner_.container_id.empty())
        owner_.container_id = std::move(uuid_);
    return std::move(owner_);
}

} // namespace

CgroupOwner parse_cgroup_path(std::string_view path, const Delegation& delegation)
{
    consume_suffix(path, " (deleted)");
    PathReader reader(delegation.nodes);
    std::string_view parent;
    bool delegated = false;
    for (size_t at = 0, end = 0; at < path.size(); at = end + 1) {
        end = std::min(path.find('/', at), path.size());
        const std::string_view name = path.substr(at, end - at);
        if (at > delegation.from && !std::exchange(delegated, true))
            reader.delegate_to(delegation.uid);
        reader.read(name, parent);
        parent = name;
    }
    return reader.extract();
}

} // namespace gpusnoop
