# SPDX-License-Identifier: Apache-2.0
"""Files of the host in which anything may stand: containers choose their names, and some their files."""
import os

from containers import HostRoot, Name, kubepods
from harness import all_but_one_in, case, check, equal
from test_containers import contained, launches_of, only_row, traced
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
    check(r"; these run a process that maps CUDA: c\x1B[2J\x1B]0;x\x07\x0D\xE2\x80\xAE0" in one.error, f"the list: {one.error}")
    for name in names[1:]:
        contained(f"docker/{name.id}", "launch vecadd 1", form="workload-driver")
    all = traced(host, "-c", "pod:no/such", json=False, banner=False, attaches=False).finish(1)
    check(all.error.endswith(" and 2 more\n") and all.error.count("c\\x1B") == 8, f"ten: {all.error}")
    no_control_bytes(one)
    no_control_bytes(all)
