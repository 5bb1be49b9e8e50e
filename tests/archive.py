# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian and Ubuntu, fetched by an apt with its own sources and lists. Nothing is installed, and the
system's lists are not changed."""
import functools
import pathlib
import shutil
import subprocess
import tempfile

root = pathlib.Path(__file__).resolve().parents[1]


class Missing(Exception):
    """Something is not available; the text is the reason."""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    if done.returncode:
        raise Missing(f"{command[0]}: {(done.stderr.strip() or done.stdout.strip())[-300:]}")
    return done.stdout


@functools.cache
def mirror(distribution):
    """URL of the distribution's package archive."""
    return run(root / "scripts/mirror", distribution).strip()


def keyring(distribution, folder):
    """File with the distribution's archive key. If it is not installed, it is taken from the keyring package, which the
    system's own archive signs."""
    name = distribution.removesuffix("-security")
    path = pathlib.Path(f"/usr/share/keyrings/{name}-archive-keyring.gpg")
    if not path.exists():
        package = {"debian": "debian-archive-keyring", "ubuntu": "ubuntu-keyring"}[name]
        run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package, cwd=folder)
        run("dpkg", "-x", str(next(folder.glob(f"{package}_*.deb"))), str(folder / "keys"))
        path = folder / "keys" / path.relative_to("/")
    return path


class Apt:
    """apt for some suites, such as "debian trixie". `folder` has its lists and cache."""

    def __init__(self, folder, architecture, suites, components="main"):
        for program in "apt-get", "dpkg-deb":
            if not shutil.which(program):
                raise Missing(f"{program} is not installed: it is needed to fetch packages of Debian and Ubuntu")
        for part in "lists/partial", "cache/archives/partial":
            (folder / part).mkdir(parents=True, exist_ok=True)
        lines = (f"deb [arch={architecture} signed-by={keyring(name, folder)}] {mirror(name)} {suite} {components}\n"
                 for name, suite in map(str.split, suites))
        self.sources = "".join(lines)
        (folder / "sources.list").write_text(self.sources)
        settings = {"APT::Architecture": architecture, "APT::Architectures": architecture, "Dir::State": folder,
                    "Dir::State::status": "/dev/null", "Dir::Cache": folder / "cache",
                    "Dir::Cache::pkgcache": "packages", "Dir::Cache::srcpkgcache": "",
                    "Dir::Etc::SourceList": folder / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
                    "Dir::Etc::Preferences": "/dev/null", "Dir::Etc::PreferencesParts": "/dev/null",
                    "APT::Sandbox::User": "root", "Acquire::Languages": "none", "Acquire::Retries": 1,
                    "Acquire::http::Timeout": 15}
        self.options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def __call__(self, program, *words, **options):
        return run(program, *self.options, *words, **options)

    def download(self, folder, *names):
        """Downloads and verifies packages; returns their files."""
        self("apt-get", "-q", "download", *names, cwd=folder)
        return sorted(folder.glob("*.deb"))

    def unpack(self, target, *names):
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            for deb in self.download(pathlib.Path(folder), *names):
                run("dpkg", "-x", str(deb), str(target))
