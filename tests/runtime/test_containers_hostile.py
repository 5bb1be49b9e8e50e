# SPDX-License-Identifier: Apache-2.0
"""Hostile metadata: users choose names of containers and cgroups, and write some of the files about them."""
import os
import uuid

from containers import Cgroup, HostRoot, Name, kubepods
from harness import all_but_one_in, case, check, equal
from programs import Workload
from test_containers import contained, launches_of, only_row, same_owner, traced
from test_hostile import no_control_bytes, no_control_bytes_in_json
from truth import totals

evil = "\x1b[2J\x1b]0;x\x07\r\u202e"


def write_names(host, name):
    host.containerd(Name(id=name.id, pod_uid=name.pod_uid, pod=evil + "p" * 4096, namespace=evil, container="c" + evil))


def write_long_links(host, name):
    host.kubelet(Name(id=name.id, pod_uid=name.pod_uid, pod="p\x1b[31m" + "p" * 100, namespace="n\x07\r",
                      container="c\x1b]"))


def config_of(host, name, namespace="k8s.io"):
    host.containerd(name)
    return host.path / f"run/containerd/io.containerd.runtime.v2.task/{namespace}/{name.id}/config.json"


def replace_config(host, name, make):
    path = config_of(host, name)
    path.unlink()
    make(path)


hurting = {
    "escapes_and_4_kilobytes": write_names, "escapes_in_links": write_long_links,
    "no_json": lambda host, name: config_of(host, name).write_bytes(b"\0\xff{{{" * 100),
    "cut_off": lambda host, name: os.truncate(config_of(host, name), 40),
    "empty": lambda host, name: os.truncate(config_of(host, name), 0),
    "deep": lambda host, name: config_of(host, name).write_text("[" * 1000000),
    "deep_objects": lambda host, name: config_of(host, name).write_text('{"a":' * 300000),
    "huge": lambda host, name: os.truncate(config_of(host, name), 10 ** 11),
    "a_pipe": lambda host, name: replace_config(host, name, os.mkfifo),
    "a_folder": lambda host, name: replace_config(host, name, os.mkdir),
    "a_loop": lambda host, name: replace_config(host, name, lambda path: path.symlink_to("config.json")),
    "a_device": lambda host, name: replace_config(host, name, lambda path: path.symlink_to("/dev/zero")),
    "a_pipe_elsewhere": lambda host, name: os.mkfifo(host.write("var/lib/docker/x", "").parent / "containers"),
    "wrong_types": lambda host, name: config_of(host, name).write_text(
        '{"annotations": {"io.kubernetes.cri.container-name": {"a": [1, null]}, "x": 1e999}}'),
    "docker": lambda host, name: host.docker(Name(id=name.id, container=evil + "d" * 4096), {evil: evil}),
}


@case(each=hurting, asan=True, long=all_but_one_in(3, hurting), alone=True)
def hostile_files(make):
    """Hostile names and metadata of a container are escaped; counts stay exact, and the tool does not hang."""
    host, name = HostRoot(), Name()
    make(host, name)
    inside = contained(kubepods(name), "launch vecadd 1009", form="workload-driver")
    tools = [traced(host, "--by", "container"), traced(host, "-e"), traced(host, "--by", "pod,container", json=False),
             traced(host, "-e", "-X", json=False), traced(host, "-H", "grid", "--by", "pod,namespace,container",
                                                          json=False)]
    inside.go().wait()
    for tool in tools:
        tool.stop()
        no_control_bytes_in_json(tool) if tool.json else no_control_bytes(tool)
    row = only_row(tools[0].rows, container_id=name.id)
    equal((row["launches"], row["pod_uid"]), (1009, name.pod_uid), "row")
    for key in "container", "pod", "namespace":
        check(len(row.get(key, "")) <= 1024, f"{key} has {len(row.get(key, ''))} characters")
    widest = max(len(line) for tool in tools[2:4] for line in tool.lines)
    check(widest < 250, f"a line has {widest} characters")


@case(alone=True)
def pod_among_hostile_files():
    host = HostRoot()
    for make in hurting.values():
        try:
            make(host, Name())
        except OSError:  # a file exists where a folder must be created
            pass
    name = Name()
    host.kubelet(name)
    inside = contained(kubepods(name))
    tool = traced(host, "-c", f"pod:{name.namespace}/{name.pod}", "--by", "container")
    count, = launches_of(inside)
    equal(totals(tool.stop().rows, "container"), {(name.container,): count}, "launches")


@case(alone=True)
def hint_lists_hostile_names():
    """The hint about an unknown container lists at most eight names, escaped."""
    host, names = HostRoot(), [Name(container="c" + evil + str(number)) for number in range(10)]
    for name in names:
        host.docker(name)
    contained(f"docker/{names[0].id}", "launch vecadd 1", form="workload-driver")
    one = traced(host, "-c", "nosuch", json=False, banner=False, attaches=False).finish(1)
    check(r"; containers with processes that map CUDA: c\x1B[2J\x1B]0;x\x07\x0D\xE2\x80\xAE0" in one.error, f"the name is not escaped: {one.error}")
    for name in names[1:]:
        contained(f"docker/{name.id}", "launch vecadd 1", form="workload-driver")
    all = traced(host, "-c", "pod:no/such", json=False, banner=False, attaches=False).finish(1)
    check(all.error.endswith(" and 2 more\n") and all.error.count("c\\x1B") == 8, f"not eight of ten names: {all.error}")
    no_control_bytes(one)
    no_control_bytes(all)


# --- names of cgroups chosen by users --------------------------------------------------------------------------------

other_uid = 65534
own_uid = str(uuid.UUID(int=7))
manager = f"user.slice/user-{other_uid}.slice/user@{other_uid}.service"


class CgroupOfUser(Cgroup):
    """A cgroup at path/below; user 65534 owns all levels from `path` on, as if systemd had delegated it."""

    def __init__(self, hierarchy, path, below):
        self.top = Cgroup(hierarchy, path)
        os.chown(self.top.path, other_uid, other_uid)
        super().__init__(hierarchy, f"{path}/{below}")

    @staticmethod
    def make(name, parent):
        os.setegid(other_uid), os.seteuid(other_uid)
        try:
            Cgroup.make(name, parent)
        finally:
            os.seteuid(0), os.setegid(0)


def in_container(path):
    """A cgroup as created by root in a container that may create cgroups. Its owner is root, as for the host's
    cgroups."""
    return lambda hierarchy, below: Cgroup(hierarchy, f"{path}/{below}")


pretending = {
    "user_manager": lambda hierarchy, below: CgroupOfUser(hierarchy, manager, below),
    "service_of_a_user": lambda hierarchy, below: CgroupOfUser(hierarchy, "system.slice/gpusnoop-test.service", below),
    "own_container": lambda hierarchy, below: CgroupOfUser(hierarchy, f"docker/{'a' * 64}", below),
    "own_pod": lambda hierarchy, below: CgroupOfUser(hierarchy, kubepods(Name(id="b" * 64, pod_uid=own_uid)), below),
    "root_in_own_container": in_container(f"docker/{'a' * 64}"),
    "root_in_own_pod": in_container(f"kubepods/pod{own_uid}/{'b' * 64}/kubepods"),
    "many_levels": lambda hierarchy, below: CgroupOfUser(hierarchy, manager, "/".join(["d" * 200] * 40 + [below])),
}
elsewhere = {  # owner fields that rows of each fake cgroup must have
    "user_manager": {"uid": other_uid, "unit": f"user@{other_uid}.service"},
    "service_of_a_user": {"uid": other_uid, "unit": "gpusnoop-test.service"},
    "own_container": {"container_id": "a" * 64, "runtime": "docker"},
    "own_pod": {"container_id": "b" * 64, "pod_uid": own_uid, "runtime": "containerd"},
    "root_in_own_container": {"container_id": "a" * 64, "runtime": "docker"},
    "root_in_own_pod": {"container_id": "b" * 64, "pod_uid": own_uid},
    "many_levels": {"uid": other_uid, "unit": f"user@{other_uid}.service"},
}
own_cgroups = ("user_manager", "service_of_a_user")  # rows of these also have the container's id


attacks = {f"{where}_{hierarchy}": (where, hierarchy) for where in pretending for hierarchy in ("v2", "memory")}


@case(each=attacks, alone=True, long=all_but_one_in(5, attacks))
def a_cgroup_named_like_that_of_a_pod(attack):
    """Launches in the fake cgroup do not count for the pod or its container, and -c traces only the real one."""
    where, hierarchy = attack
    host, name = HostRoot(), Name()
    host.kubelet(name)
    group = pretending[where](hierarchy, kubepods(name))
    attacker = Workload("launch vecadd 1009", preexec=group.join)
    victim = Workload("launch vecadd 503", preexec=Cgroup(hierarchy, kubepods(name)).join)
    by_container, by_pod = traced(host, "--by", "container"), traced(host, "--by", "pod")
    by_pid, events = traced(host, "--by", "pid"), traced(host, "-e")
    scoped = [traced(host, "-c", what, "--by", "container") for what in
              (name.id, name.id[:16], f"pod:{name.namespace}/{name.pod}")]
    launches_of(attacker, victim)
    for tool in (by_container, by_pod, by_pid, events):
        tool.stop()
    want = {**elsewhere[where]}
    if where in own_cgroups:
        want |= {"container_id": name.id, "runtime": "containerd"}
    for row in (only_row(by_pid.rows, pid=attacker.pid),
                *[event for event in events.events if event["pid"] == attacker.pid][:1]):
        same_owner({key: value for key, value in row.items() if key != "cgroup"}, **want)
    of_victim = only_row(by_container.rows, container_id=name.id, pod_uid=name.pod_uid)
    same_owner(of_victim, **name.labels, runtime="containerd", cgroup="/" + kubepods(name))
    equal(of_victim["launches"], 503, "launches of the container")
    equal(only_row(by_pod.rows, pod_uid=name.pod_uid)["launches"], 503, "launches of the pod")
    for tool in scoped:
        equal(totals(tool.stop().rows, "container_id"), {(name.id,): 503}, f"launches of {tool}")


@case(alone=True)
def metadata_in_a_home():
    """A user's metadata files can name only the user's own containers, neither pods nor containers of root."""
    host, victim, name = HostRoot(), Name(), Name()
    host.docker(victim)
    host.write("etc/passwd", f"mallory:x:{other_uid}:{other_uid}::/home/mallory:/bin/sh\n")
    host.write(f"run/user/{other_uid}/bus", "")
    for id in (name.id, victim.id):  # the second container belongs to root
        host.write(f"home/mallory/.local/share/docker/containers/{id}/config.v2.json", {
            "Name": f"/{victim.container}", "Config": {"Image": "cuda", "Labels": {
                "io.kubernetes.pod.name": "train-0", "io.kubernetes.pod.namespace": "team",
                "io.kubernetes.pod.uid": victim.pod_uid, "io.kubernetes.container.name": victim.container}}})
    own = Workload("launch vecadd 1009", preexec=CgroupOfUser("v2", manager, f"docker-{name.id}.scope").join)
    other = Workload("launch vecadd 503", preexec=Cgroup("v2", f"docker/{victim.id}").join)
    tool, table = traced(host, "--by", "container"), traced(host, "--by", "container", json=False)
    scoped = traced(host, "-c", victim.container, "--by", "container")
    pod = traced(host, "-c", "pod:team/train-0", json=False, banner=False, attaches=False).finish(1)
    launches_of(own, other)
    rows = tool.stop().rows
    of_own, of_other = only_row(rows, container_id=name.id), only_row(rows, container_id=victim.id)
    equal((of_own["launches"], of_own["uid"], of_own.get("pod"), of_own.get("namespace"), of_own.get("pod_uid")),
          (1009, other_uid, None, None, None), "row of the user's container")
    equal((of_other["launches"], of_other.get("uid"), of_other["container"]), (503, None, victim.container), "row of root's container")
    check(f"docker:{victim.container} (uid {other_uid})" in table.stop().text, f"the table lacks the owner: {table.text}")
    equal(totals(scoped.stop().rows, "container_id"), {(victim.id,): 503}, "launches with -c NAME")
    check("there is no pod 'train-0'" in pod.error, f"unexpected message about the pod: {pod.error}")


@case(alone=True)
def two_containers_of_one_id():
    """-c with an ambiguous id fails and lists both; -c with a path works."""
    host, name = HostRoot(), Name()
    groups = [Cgroup("v2", f"{parent}/{name.id}") for parent in ("docker", "gpu-jobs")]
    inside = [Workload(f"launch vecadd {count}", preexec=group.join) for count, group in zip((11, 13), groups)]
    ask = traced(host, "-c", name.id, json=False, banner=False, attaches=False).finish(1)
    for group in groups:
        check(group.inside in ask.error, f"a candidate is missing: {ask.error}")
    check("path" in ask.error, f"the remedy is missing: {ask.error}")
    one = traced(host, "-c", groups[1].path, "--by", "container")
    launches_of(*inside)
    equal(totals(one.stop().rows, "container_id"), {(name.id,): 13}, "launches")
