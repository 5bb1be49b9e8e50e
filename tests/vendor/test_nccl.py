# SPDX-License-Identifier: Apache-2.0
"""NCCL as NVIDIA builds it, and RCCL. Without a device there is no communicator, but their code is what it is anywhere:
where probes sit, and what it tells of where communicators say which they are."""
import json
import re
import subprocess

import vendor
from harness import Skip, case, check, equal
from vendor import exports, fetched, programs

# What a disassembler shows of ncclCommUserRank, by version; and at least so many functions where the kernel need not
# single-step. In RCCL 5.4.3, which is of before 2.16, there is nothing that all ranks have in common.
nccl_versions = {"2.22": ("2.22.3", "0x34250", 30), "2.29": ("2.29.7", "0x1206d8", 58)}


def library(folder, name):
    path = fetched / folder / name
    if not path.exists():
        raise Skip(vendor.why_not_fetched or f"no {folder} could be fetched")
    return path


def program(name, path, text=""):
    done = subprocess.run([programs / name, path], input=text, capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ""), name)
    return done.stdout.strip()


def place_all(path, emulated):
    names = sorted(name for name in exports(path, "TW") if re.match("nccl[A-Z]", name))
    found = [json.loads(line) for line in program("placement", path, "\n".join(names)).splitlines()]
    equal(sorted(one["name"] for one in found), names, "functions found")
    stepped = [one["name"] for one in found if not one["emulated"]]
    print(f"   {path.name}: {len(names)} functions, {len(stepped)} single-stepped")
    check(len(names) - len(stepped) >= emulated, f"of {len(names)}, single-stepped: {stepped}")


@case(each={folder: folder for folder in nccl_versions}, tool="ncclwait")
def nccl(folder):
    path = library(f"nccl/{folder}", "libnccl.so.2")
    version, offset, emulated = nccl_versions[folder]
    place_all(path, emulated)
    if not path.resolve().name.endswith(version):
        raise Skip(f"{path.resolve().name} is another version: {program('identity', path)}")
    equal(program("identity", path), offset, f"where communicators of NCCL {version} have their rank")


@case(tool="ncclwait")
def rccl():
    path = library("rccl", "librccl.so.1")
    place_all(path, 20)
    equal(program("identity", path), "unknown", "where communicators of RCCL have their rank")
