# SPDX-License-Identifier: Apache-2.0
"""Files of the host in which anything may stand: containers choose their names, and some their files."""
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
def files_that_hurt(make):
    """The names of a container are its own to choose: text stays text, the numbers stay right, and nothing hangs."""
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
def asking_for_a_pod_among_files_that_hurt():
    host = HostRoot()
    for make in hurting.values():
        try:
            make(host, Name())
        except OSError:  # one is in another's way
            pass
    name = Name()
    host.kubelet(name)
    inside = contained(kubepods(name))
    tool = traced(host, "-c", f"pod:{name.namespace}/{name.pod}", "--by", "container")
    count, = launches_of(inside)
    equal(totals(tool.stop().rows, "container"), {(name.container,): count}, "launches")


@case(alone=True)
def a_list_of_them():
    """Of a container that is none, whose names the hint lists: as harmless text, and no more than eight."""
    host, names = HostRoot(), [Name(container="c" + evil + str(number)) for number in range(10)]
    for name in names:
        host.docker(name)
    contained(f"docker/{names[0].id}", "launch vecadd 1", form="workload-driver")
    one = traced(host, "-c", "nosuch", json=False, banner=False, attaches=False).finish(1)
    check(r"; containers with processes that map CUDA: c\x1B[2J\x1B]0;x\x07\x0D\xE2\x80\xAE0" in one.error, f"the list: {one.error}")
    for name in names[1:]:
        contained(f"docker/{name.id}", "launch vecadd 1", form="workload-driver")
    all = traced(host, "-c", "pod:no/such", json=False, banner=False, attaches=False).finish(1)
    check(all.error.endswith(" and 2 more\n") and all.error.count("c\\x1B") == 8, f"ten: {all.error}")
    no_control_bytes(one)
    no_control_bytes(all)


# --- names of cgroups, as users choose them ------------------------------------------------------------------------------

nobody = 65534
own_uid = str(uuid.UUID(int=7))
manager = f"user.slice/user-{nobody}.slice/user@{nobody}.service"


class OfNobody(Cgroup):
    """Levels below one that user 65534 owns, as systemd delegates it, are that user's own."""

    def __init__(self, hierarchy, path, below):
        self.top = Cgroup(hierarchy, path)
        os.chown(self.top.path, nobody, nobody)
        super().__init__(hierarchy, f"{path}/{below}")

    @staticmethod
    def make(name, parent):
        os.setegid(nobody), os.seteuid(nobody)
        try:
            Cgroup.make(name, parent)
        finally:
            os.seteuid(0), os.setegid(0)


def in_container(path):
    """Root of a container that may create cgroups: they are owned by root, too."""
    return lambda hierarchy, below: Cgroup(hierarchy, f"{path}/{below}")


pretending = {
    "user_manager": lambda hierarchy, below: OfNobody(hierarchy, manager, below),
    "service_of_a_user": lambda hierarchy, below: OfNobody(hierarchy, "system.slice/gpusnoop-test.service", below),
    "own_container": lambda hierarchy, below: OfNobody(hierarchy, f"docker/{'a' * 64}", below),
    "own_pod": lambda hierarchy, below: OfNobody(hierarchy, kubepods(Name(id="b" * 64, pod_uid=own_uid)), below),
    "root_in_own_container": in_container(f"docker/{'a' * 64}"),
    "root_in_own_pod": in_container(f"kubepods/pod{own_uid}/{'b' * 64}/kubepods"),
    "many_levels": lambda hierarchy, below: OfNobody(hierarchy, manager, "/".join(["d" * 200] * 40 + [below])),
}
elsewhere = {  # what is known of each, and that is all
    "user_manager": {"uid": nobody, "unit": f"user@{nobody}.service"},
    "service_of_a_user": {"uid": nobody, "unit": "gpusnoop-test.service"},
    "own_container": {"container_id": "a" * 64, "runtime": "docker"},
    "own_pod": {"container_id": "b" * 64, "pod_uid": own_uid, "runtime": "containerd"},
    "root_in_own_container": {"container_id": "a" * 64, "runtime": "docker"},
    "root_in_own_pod": {"container_id": "b" * 64, "pod_uid": own_uid},
    "many_levels": {"uid": nobody, "unit": f"user@{nobody}.service"},
}
own_cgroups = ("user_manager", "service_of_a_user")  # whose containers count as the user's


attacks = {f"{where}_{hierarchy}": (where, hierarchy) for where in pretending for hierarchy in ("v2", "memory")}


@case(each=attacks, alone=True, long=all_but_one_in(5, attacks))
def a_cgroup_named_like_that_of_a_pod(attack):
    """Neither the pod nor its container gets what is done there, and -c traces the real one alone."""
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
def files_in_a_home_that_name_others():
    """A user's files name that user's containers alone, and neither a pod nor a container of root's."""
    host, victim, name = HostRoot(), Name(), Name()
    host.docker(victim)
    host.write("etc/passwd", f"mallory:x:{nobody}:{nobody}::/home/mallory:/bin/sh\n")
    host.write(f"run/user/{nobody}/bus", "")
    for id in (name.id, victim.id):  # the second is not theirs
        host.write(f"home/mallory/.local/share/docker/containers/{id}/config.v2.json", {
            "Name": f"/{victim.container}", "Config": {"Image": "cuda", "Labels": {
                "io.kubernetes.pod.name": "train-0", "io.kubernetes.pod.namespace": "team",
                "io.kubernetes.pod.uid": victim.pod_uid, "io.kubernetes.container.name": victim.container}}})
    own = Workload("launch vecadd 1009", preexec=OfNobody("v2", manager, f"docker-{name.id}.scope").join)
    other = Workload("launch vecadd 503", preexec=Cgroup("v2", f"docker/{victim.id}").join)
    tool, table = traced(host, "--by", "container"), traced(host, "--by", "container", json=False)
    scoped = traced(host, "-c", victim.container, "--by", "container")
    pod = traced(host, "-c", "pod:team/train-0", json=False, banner=False, attaches=False).finish(1)
    launches_of(own, other)
    rows = tool.stop().rows
    of_own, of_other = only_row(rows, container_id=name.id), only_row(rows, container_id=victim.id)
    equal((of_own["launches"], of_own["uid"], of_own.get("pod"), of_own.get("namespace"), of_own.get("pod_uid")),
          (1009, nobody, None, None, None), "of the user")
    equal((of_other["launches"], of_other.get("uid"), of_other["container"]), (503, None, victim.container), "of root")
    check(f"docker:{victim.container} (uid {nobody})" in table.stop().text, f"whose it is: {table.text}")
    equal(totals(scoped.stop().rows, "container_id"), {(victim.id,): 503}, "launches by the name")
    check("there is no pod 'train-0'" in pod.error, f"the pod: {pod.error}")


@case(alone=True)
def two_containers_of_one_id():
    """-c does not choose between them; with a path it need not."""
    host, name = HostRoot(), Name()
    groups = [Cgroup("v2", f"{parent}/{name.id}") for parent in ("docker", "gpu-jobs")]
    inside = [Workload(f"launch vecadd {count}", preexec=group.join) for count, group in zip((11, 13), groups)]
    ask = traced(host, "-c", name.id, json=False, banner=False, attaches=False).finish(1)
    for group in groups:
        check(group.inside in ask.error, f"the candidates: {ask.error}")
    check("path" in ask.error, f"what to do: {ask.error}")
    one = traced(host, "-c", groups[1].path, "--by", "container")
    launches_of(*inside)
    equal(totals(one.stop().rows, "container_id"), {(name.id,): 13}, "launches")
