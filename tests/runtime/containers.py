# SPDX-License-Identifier: Apache-2.0
"""Real cgroups and containers for the cases. Those of a case are removed when it ends, even if it fails."""
import functools
import itertools
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import uuid

import cgroupfs
import harness
import system
from harness import Failure, Skip, check, wait_until
from programs import Workload

numbers = itertools.count(1)

own = "gpusnoop-test-"  # prefix of cgroups that only one case uses


@functools.cache
def hierarchies():
    """Mount points of cgroup hierarchies: "v2", and one for each v1 controller."""
    found = {}
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, folder, kind, options, *_ = line.split()
            if kind == "cgroup2":
                found.setdefault("v2", folder)
            elif kind == "cgroup":
                for option in options.split(","):
                    found.setdefault(option, folder)
    return found


def need_hierarchy(name):
    if name not in hierarchies():
        raise Skip(f"no cgroup {name if name == 'v2' else 'v1 controller ' + name} is mounted here")
    return hierarchies()[name]


# --- cgroups ---------------------------------------------------------------------------------------------------------

class Cgroup:
    """A cgroup of a hierarchy ("v2", "memory", ...). Missing parents are created, and removed with it. With
    `make=False`, the case creates the cgroup itself, but the end of the case removes it too."""

    def __init__(self, hierarchy, path, make=True):
        self.mount = need_hierarchy(hierarchy)
        self.names = [name for name in path.split("/") if name]
        if not self.names[0].startswith(own):
            harness.must_be_alone()  # other cases may use the same levels; the last case to end removes them
        self.inside = "/" + "/".join(self.names)  # the name that the kernel and the tool use
        self.path = self.mount + self.inside
        self.kept = 0  # number of outermost levels that already existed, and are not removed
        while self.kept < len(self.names) and self.exists(self.kept + 1):
            self.kept += 1
        with open(harness.here / "cgroups", "a") as file:  # for cgroupfs.remove_left()
            print(json.dumps([self.mount, self.names, self.kept]), file=file)
        harness.at_end.append(self.remove)
        for depth in range(self.kept, len(self.names) if make else 0):
            cgroupfs.within(self.mount, self.names[:depth], lambda fd: self.make(self.names[depth], fd))

    @staticmethod
    def make(name, parent):
        try:
            os.mkdir(name, dir_fd=parent)
        except FileExistsError:
            pass

    def exists(self, depth=None):
        try:
            cgroupfs.within(self.mount, self.names[:depth], lambda fd: None)
            return True
        except FileNotFoundError:
            return False

    def add(self, pid):
        def write(fd):
            procs = os.open("cgroup.procs", os.O_WRONLY, dir_fd=fd)
            try:
                os.write(procs, str(pid).encode())
            finally:
                os.close(procs)
        cgroupfs.within(self.mount, self.names, write)
        return self

    def join(self):
        """Preexec function: moves the process into the cgroup, so that the program is in it from its first
        instruction."""
        self.add(0)

    def remove(self):
        cgroupfs.remove_levels(self.mount, self.names, self.kept)

    @property
    def procs(self):
        return self.path + "/cgroup.procs"

    @property
    def id(self):
        return os.stat(self.path).st_ino


# --- names of containers ---------------------------------------------------------------------------------------------

class Name:
    """Unique names and ids of one container in one pod."""

    def __init__(self, **given):
        tag = secrets.token_hex(3)  # short enough for a table to show all three names in full
        self.id = given.get("id") or secrets.token_hex(32)
        self.pod_uid = given.get("pod_uid") or str(uuid.uuid4())
        self.pod = given.get("pod") or f"trainer-{tag}"
        self.namespace = given.get("namespace") or f"team-{tag}"
        self.container = given.get("container") or f"cuda-{tag}"

    @property
    def labels(self):
        return {"container": self.container, "container_id": self.id, "pod": self.pod, "namespace": self.namespace,
                "pod_uid": self.pod_uid}


def kubepods(name, runtime="cri-containerd"):
    """Path of a container's cgroup as the kubelet creates it with systemd."""
    slice = f"kubepods-burstable-pod{name.pod_uid.replace('-', '_')}.slice"
    return f"kubepods.slice/kubepods-burstable.slice/{slice}/{runtime}-{name.id}.scope"


def kubepods_cgroupfs(name):
    """Path of a container's cgroup as the kubelet creates it without systemd."""
    return f"kubepods/burstable/pod{name.pod_uid}/{name.id}"


class HostRoot:
    """A folder for --host-root, with the metadata files of container runtimes."""

    def __init__(self):
        self.path = harness.here / f"host{next(numbers)}"
        self.path.mkdir()

    def enter(self):
        """Preexec function for the tool: also mounts this machine's cgroup hierarchies below the folder, as in a
        container that has the host's root mounted there."""
        system.private_mounts()
        for mount in set(hierarchies().values()):
            (self.path / mount[1:]).mkdir(parents=True, exist_ok=True)
            system.bind(mount, self.path / mount[1:])

    def write(self, path, content):
        file = self.path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def kubelet(self, name):
        """Creates the kubelet's links to logs: the only source of pod names that exists with every runtime."""
        log = self.write(f"var/log/pods/{name.namespace}_{name.pod}_{name.pod_uid}/{name.container}/0.log", "")
        links = self.path / "var/log/containers"
        links.mkdir(parents=True, exist_ok=True)
        (links / f"{name.pod}_{name.namespace}_{name.container}-{name.id}.log").symlink_to(
            "/" + str(log.relative_to(self.path)))
        return self

    def containerd(self, name, namespace="k8s.io", annotations={}, devices=()):
        cri = "io.kubernetes.cri."
        self.write(f"run/containerd/io.containerd.runtime.v2.task/{namespace}/{name.id}/config.json", {
            "ociVersion": "1.1.0", "process": {"args": ["/bin/sh"], "cwd": "/"}, "annotations": {
                cri + "container-name": name.container, cri + "container-type": "container",
                cri + "sandbox-name": name.pod, cri + "sandbox-namespace": name.namespace,
                cri + "sandbox-uid": name.pod_uid, cri + "sandbox-id": secrets.token_hex(32), **annotations},
            "linux": {"devices": [{"path": path} for path in devices]}})
        return self

    def docker(self, name, labels=None):
        self.write(f"var/lib/docker/containers/{name.id}/config.v2.json", {
            "State": {"Running": True}, "ID": name.id, "Name": "/" + name.container, "Driver": "overlay2",
            "Config": {"Hostname": name.id[:12], "Image": "cuda", "Labels": labels or {}}})
        return self


# --- containers ------------------------------------------------------------------------------------------------------

class Image:
    """An image layer with the stand-in and the libraries it needs, in a path that does not exist on the host."""

    inside = "/srv/gpusnoop-image/bin"

    def __init__(self):
        check(not os.path.exists(self.inside), f"{self.inside} exists on this machine")
        self.lower = harness.here / f"image{next(numbers)}"
        shutil.copytree(harness.standin, self.lower / self.inside[1:], symlinks=True,
                        ignore=shutil.ignore_patterns("obj", "*.a"))
        for path in needed_objects():
            target = self.lower / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)

    def layers(self):
        """Path of a writable root on top of this layer, and the mounts that create it."""
        layer = f"{harness.here}/container{next(numbers)}"
        root = layer + "/root"
        return root, [
            ["none", layer, "tmpfs", 0, None], [layer + "/upper"], [layer + "/work"],
            ["overlay", root, "overlay", 0, f"lowerdir={self.lower},upperdir={layer}/upper,workdir={layer}/work"],
            [str(harness.here), root + str(harness.here), None, system.MS_BIND, None], [root + "/proc"]]


@functools.cache
def needed_objects():
    """System libraries that the stand-in needs, according to ldd."""
    programs = [harness.standin / "workload", harness.standin / "libcuda.so.1"]
    done = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True)
    paths = set(re.findall(r"(?:=>|^)\s*(/.+) \(0x", done.stdout, re.M))
    return sorted(path for path in paths if not path.startswith(str(harness.standin)))


def contain_command(mounts, root, cgroups, command):
    program = pathlib.Path(__file__).with_name("contain.py")
    return [sys.executable, "-BS", program, json.dumps(mounts), json.dumps(root), json.dumps(cgroups),
            *map(str, command)]


@functools.cache
def need_overlay():
    layer = f"{harness.here}/overlay"
    mounts = [["none", layer, "tmpfs", 0, None], [layer + "/a"], [layer + "/b"], [layer + "/c"],
              ["overlay", layer + "/d", "overlay", 0, f"lowerdir={layer}/a,upperdir={layer}/b,workdir={layer}/c"]]
    done = subprocess.run(contain_command(mounts, "", [], ["/bin/true"]), capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"no overlayfs over tmpfs here: {done.stderr.splitlines()[-1]}")


class Container(Workload):
    """A workload in a container with its own root, mounts and pid namespace. Calls in its truth have `ns_pid`, the pid
    in the container, in addition to the host's pid."""

    def __init__(self, script, form="workload", *, image=None, cgroups=(), start=True, **options):
        need_overlay()
        self.image = image or Image()
        self.cgroups = cgroups
        self.pids = {}  # pid in the container -> pid on the host
        super().__init__(script, form, folder=pathlib.Path(self.image.inside), start=False, wrap=self.launcher,
                         **options)
        if start:
            self.ready()

    def launcher(self, command):
        root, mounts = self.image.layers()
        return contain_command(mounts, root, [group.procs for group in self.cgroups], command)

    def first_process(self):
        """The host's pid of process 1 of the container."""
        return next((pid for pid in system.descendants(self.process.pid)
                     if system.stat_fields(pid)[1:2] == [str(self.process.pid)]), None)

    def ready(self):
        super().ready()
        self.pid = self.first_process()
        return self.find_child_pids()

    def find_child_pids(self):
        """Records the pids of the processes that run now."""
        for pid in [self.pid, *system.descendants(self.pid)]:
            inside = pids_in_namespaces(pid)[-1:]
            if inside:
                self.pids[inside[0]] = pid
        return self

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def truth(self):
        calls = super().truth()
        for call in calls:
            call["ns_pid"] = call["pid"]
            call["tid"] = self.pids.get(call["tid"])
            call["pid"] = self.pids.get(call["pid"])
        return calls


def pids_in_namespaces(pid):
    """Ids of a process in each pid namespace, from this one to the innermost."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return [int(n) for n in re.search(r"^NSpid:(.*)", file.read(), re.M)[1].split()]
    except OSError:
        return []


class RuncContainer(Container):
    """A workload in a container created by runc. `path`: path of its cgroup in every hierarchy."""

    def __init__(self, script, form="workload", *, path, **options):
        need_runc()
        self.id = f"gpusnoop-{secrets.token_hex(4)}"
        self.bundle = harness.here / self.id
        self.bundle.mkdir()
        self.path = "/" + path.strip("/")
        for hierarchy, mount in hierarchies().items():
            if os.path.exists(mount + "/cgroup.procs"):
                Cgroup(hierarchy, self.path, make=False)
        harness.at_end.append(lambda: runc("delete", "--force", self.id))
        super().__init__(script, form, **options)

    def launcher(self, command):
        root, mounts = self.image.layers()
        self.configure(root, [str(word) for word in command])
        return contain_command(mounts, "", [], [runc_program(), *runc_options(), "run", "--bundle",
                                        self.bundle, "--pid-file", self.bundle / "pid", self.id])

    def configure(self, root, command):
        runc("spec", "--bundle", self.bundle).check_returncode()
        file = self.bundle / "config.json"
        config = json.loads(file.read_text())
        config["process"].update(terminal=False, args=command, cwd="/")
        config["root"] = {"path": root, "readonly": False}
        config["linux"]["cgroupsPath"] = self.path
        if {"type": "cgroup"} not in config["linux"]["namespaces"]:
            config["linux"]["namespaces"].append({"type": "cgroup"})
        config["mounts"] = [m for m in config["mounts"] if m["destination"] in ("/proc", "/dev", "/sys")]
        file.write_text(json.dumps(config))

    def ready(self):
        try:
            return super().ready()
        except Failure as failure:
            if (self.bundle / "pid").exists():
                raise
            raise Skip(f"runc cannot run containers here: {failure}") from None

    def first_process(self):
        """The pid, as seen on the host, of the container's process 1. runc writes its pid file only after the program
        has started."""
        return int(wait_until((self.bundle / "pid").exists, "runc writes the pid") and (self.bundle / "pid").read_text())

    def execute(self, script, form="workload", **options):
        """Starts another workload in the container, like docker exec. runc must run in the mount namespace in which the
        container's root is mounted."""
        mounts = os.open(f"/proc/{self.process.pid}/ns/mnt", os.O_RDONLY)
        try:
            return Workload(script, form, folder=pathlib.Path(self.image.inside), **options,
                            preexec=lambda: system.enter_mounts(mounts), wrap=lambda command: [
                                runc_program(), *runc_options(), "exec", self.id,
                                *map(str, command)])
        finally:
            os.close(mounts)


runc_path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def runc_program():
    return shutil.which("runc", path=runc_path)


def runc_options():
    return ["--root", harness.here / "runc"]


def runc(*words):
    return subprocess.run([runc_program(), *runc_options(), *words], capture_output=True, text=True)


def need_runc():
    if not runc_program():
        raise Skip("runc is not installed")


def overlay_on(lower):
    """Mounts an overlay with this lower layer in a mount namespace of the case, and returns its path."""
    merged, upper, work = (harness.here / name for name in ("merged", "upper", "work"))
    for folder in merged, upper, work:
        folder.mkdir()
    system.private_mounts()
    try:
        system.mount("overlay", merged, "overlay", 0, f"lowerdir={lower},upperdir={upper},workdir={work}")
    except OSError as error:
        raise Skip(f"no overlayfs here: {error}")
    return merged
