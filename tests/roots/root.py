# SPDX-License-Identifier: Apache-2.0
"""Chroots with a fresh distribution, for running tests in."""
import fcntl
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

repository = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = str(repository / "tests/runtime"), str(repository / "tests")

import system  # noqa: E402
from archive import Missing, mirror, run as checked  # noqa: E402

build = pathlib.Path(os.environ.get("BUILD", repository / "build")).resolve()
cache = pathlib.Path(os.environ["GPUSNOOP_CACHE"]) / "roots" if "GPUSNOOP_CACHE" in os.environ else build / "roots"

# {suite: distribution}
suites = {"bookworm": "debian", "trixie": "debian", "testing": "debian", "noble": "ubuntu", "resolute": "ubuntu"}
components = {"debian": ["main"], "ubuntu": ["main", "universe"]}
# Arguments of debootstrap. An older debootstrap has no script for new Ubuntu suites. Its scripts for all Ubuntu suites
# are the same, so the script of an old suite is used.
scripts = {"debian": [], "ubuntu": ["/usr/share/debootstrap/scripts/gutsy"]}

# The repository's path in the chroot. Not below /root, since some cases run as an ordinary user.
inside = "/srv/gpusnoop"

inherited_variables = ("http_proxy", "https_proxy", "no_proxy", "GPUSNOOP_MIRROR")


def files():
    """Tracked files, and untracked ones that are not ignored. Without git's folder, as in an unpacked archive: all
    files except build results."""
    if not (repository / ".git").exists():
        paths = [path for path in repository.rglob("*") if not path.is_dir() or path.is_symlink()]
        names = [str(path.relative_to(repository)) for path in paths if "__pycache__" not in path.parts]
        return [name for name in names if not name.startswith("build/")]
    if not shutil.which("git"):
        raise Missing("git is not installed: it lists the files to copy")
    # safe.directory: another user may own the checkout.
    names = checked("git", "-c", "safe.directory=*", "-C", repository, "ls-files", "-z", "--cached", "--others",
                    "--exclude-standard")
    return [name for name in names.split("\0") if name and (repository / name).exists()]


def with_proxies(environment):
    """Adds the proxies of apt's configuration to the environment, for debootstrap and for apt in a chroot."""
    if not shutil.which("apt-config"):
        return environment
    shell = checked("apt-config", "shell", "http_proxy", "Acquire::http::Proxy", "https_proxy", "Acquire::https::Proxy")
    proxies = dict(word.split("=", 1) for word in shlex.split(shell))
    return environment | {name: url for name, url in proxies.items() if url and url != "DIRECT"}


def copy_files(target):
    """Copies files() to a folder."""
    os.makedirs(target, exist_ok=True)
    names = os.fsencode("\0".join(files()))
    packed = subprocess.run(["tar", "-C", repository, "--null", "-T", "-", "-c"], input=names, check=True,
                            stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-C", target, "--no-same-owner", "-x"], input=packed, check=True)


class Root:
    """Chroot of one suite. The base is created once; each run uses a copy, which is removed at the end."""

    def __init__(self, suite):
        self.suite = suite
        self.distribution = suites[suite]
        self.base, self.folder, self.debs = (cache / f"{suite}.{part}" for part in ("base", "root", "debs"))

    def __enter__(self):
        if os.geteuid():
            raise Missing("creating a chroot needs root")
        if not shutil.which("debootstrap"):
            raise Missing("debootstrap is not installed: scripts/install-deps roots installs it")
        self.mirror = mirror(self.distribution)
        self.debs.mkdir(parents=True, exist_ok=True)
        self.lock = open(cache / f"{self.suite}.lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.kill_programs()  # left by a run that was killed
        self.make_base()
        self.remove()
        checked("cp", "-a", self.base, self.folder)
        self.copy_repository()
        return self

    def __exit__(self, *_):
        self.kill_programs()
        self.remove()
        self.lock.close()

    def make_base(self):
        """Creates the base under a temporary name, and renames it once complete. The base of Debian testing is
        recreated after a week."""
        week = 7 * 24 * 3600
        if self.base.exists() and self.suite == "testing" and time.time() - self.base.stat().st_mtime > week:
            shutil.rmtree(self.base)
        if self.base.exists():
            return
        partial = pathlib.Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
        try:
            checked("debootstrap", "--variant=minbase", f"--components={','.join(components[self.distribution])}",
                    f"--keyring=/usr/share/keyrings/{self.distribution}-archive-keyring.gpg", self.suite, partial,
                    self.mirror, *scripts[self.distribution], env=with_proxies(os.environ))
            partial.chmod(0o755)
            os.utime(partial)
            partial.rename(self.base)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def copy_repository(self):
        copy_files(f"{self.folder}{inside}")
        for name in "hosts", "resolv.conf":
            shutil.copy(f"/etc/{name}", self.folder / "etc")
        # The base may have been fetched from another server.
        (self.folder / "etc/apt/sources.list").write_text(
            f"deb {self.mirror} {self.suite} {' '.join(components[self.distribution])}\n")
        # Accepts mirrors that have not been updated for weeks.
        (self.folder / "etc/apt/apt.conf.d/50mirror").write_text('Acquire::Check-Valid-Until "false";\n')

    def mount(self):
        """Called in a child before exec: mounts what systemd would mount, and enters the chroot. The mounts are
        private, so they disappear with the last process that uses them."""
        system.die_with_parent()
        system.private_mounts()
        root = str(self.folder)
        system.bind(root, root)
        system.mount("proc", f"{root}/proc", "proc")
        system.mount("sysfs", f"{root}/sys", "sysfs")
        system.mount("/dev", f"{root}/dev", None, system.MS_BIND | system.MS_REC)
        if os.path.ismount("/sys/fs/cgroup"):
            system.mount("/sys/fs/cgroup", f"{root}/sys/fs/cgroup", None, system.MS_BIND | system.MS_REC)
        else:
            system.mount("cgroup2", f"{root}/sys/fs/cgroup", "cgroup2")
        system.mount("bpf", f"{root}/sys/fs/bpf", "bpf")
        system.mount("tracefs", f"{root}/sys/kernel/tracing", "tracefs")
        system.mount("debugfs", f"{root}/sys/kernel/debug", "debugfs")
        system.mount("tmpfs", f"{root}/run", "tmpfs", options="mode=755")
        system.bind(str(self.debs), f"{root}/var/cache/apt/archives")
        system.change_root(root)
        os.chdir(inside)

    def run(self, command, log, seconds):
        """Runs a shell command in the chroot's repository. Returns its status, or None after a timeout."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "LANG": "C.UTF-8"} | {name: value for name, value in with_proxies(os.environ).items()
                                          if name in inherited_variables}
        with open(log, "w") as output:
            process = subprocess.Popen(["/bin/sh", "-exc", command], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, env=environment, preexec_fn=self.mount,
                                       start_new_session=True)
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                self.kill_programs()

    def programs(self):
        """Ids of all processes that have this folder as their root."""
        mine = os.stat(self.folder)
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.path.samestat(os.stat(f"/proc/{name}/root"), mine):
                    yield int(name)
            except OSError:
                pass

    def kill_programs(self):
        """Kills all processes in the chroot, including daemons."""
        while self.folder.exists() and (remaining := list(self.programs())):
            for pid in remaining:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            system.reap()
            time.sleep(0.02)

    def remove(self):
        if self.folder.exists():
            checked("rm", "-rf", "--one-file-system", self.folder)
