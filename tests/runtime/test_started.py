# SPDX-License-Identifier: Apache-2.0
"""Programs that the tool starts itself (-- PROGRAM ARGS)."""
import ctypes
import os
import pwd
import signal
import subprocess

import harness
import system
from harness import case, check, equal
from programs import Tool, calls_in, ignore_and_block_signals
from truth import same_counts

calls = "launch vecadd 1009; launch saxpy 503"


def workload(script, form="workload-dlopen"):
    return [harness.standin / form, "--truth", harness.here / "started.truth", script]


def started(program, *arguments, **options):
    return Tool(*arguments, env={"LD_LIBRARY_PATH": str(harness.standin)}, program=program, **options)


@case(each={"session": "session", "multi": "multi", "tracefs": "tracefs"}, long=("multi", "tracefs"))
def from_the_first_call(way):
    """A program that launches immediately is counted from its first call, even if its library is new to the tool."""
    tool = started(workload(calls), "--attach", way)
    same_counts(tool.finish(), calls_in(harness.here / "started.truth"))


@case(each={"usual": None, "ignore_and_block_signals": ignore_and_block_signals})
def children_and_status(preexec):
    """Children are counted once their library is mapped, and the exit status is the script's. The script inherits
    limits, signals, capabilities and descriptors from the tool's parent."""
    query = "ulimit -n; grep -E 'Sig(Blk|Ign)|CapEff' /proc/self/status; ls /proc/self/fd"
    words = " ".join(f"'{word}'" for word in workload(f"dlopen; sleep 300; {calls}"))
    script = f"{words}; ({query}) > {harness.here}/inside; exit 7"
    tool = started(["sh", "-c", script], preexec=preexec).finish(7)
    same_counts(tool, calls_in(harness.here / "started.truth"))
    subprocess.run(["sh", "-c", f"({query}) > {harness.here}/outside"], stdin=subprocess.DEVNULL,
                   capture_output=True, check=True, preexec_fn=preexec)
    equal((harness.here / "inside").read_text(), (harness.here / "outside").read_text(), "inherited state")


@case
def ctrl_c():
    """A signal that is sent only to the tool also reaches the program. The tool prints its report, and exits with 128
    plus the signal's number."""
    tool = started(["sleep", "60"])
    tool.process.send_signal(signal.SIGINT)
    tool.finish(128 + signal.SIGINT)
    check(tool.of_type("end"), "no report")


@case
def the_tool_is_killed():
    """The waiting program exits, too: otherwise, the check for leftovers would find it."""
    tool = started(["sleep", "60"], banner=False)
    tool.process.kill()
    tool.process.wait()


# --- as another user -------------------------------------------------------------------------------------------------

other_user = pwd.getpwnam("nobody")
ids = ("id -u; id -ru; id -g; id -G; echo $HOME $USER $LOGNAME $SHELL; "
       "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status")


@case(each={"by_name": other_user.pw_name, "by_number": str(other_user.pw_uid)})
def as_another_user(name):
    """The program permanently has that user's identity, and is counted from its first call. The tool exits with the
    program's status."""
    os.chmod(harness.here, 0o777)
    words = " ".join(f"'{word}'" for word in workload(f"dlopen; sleep 300; {calls}"))
    script = f"{words}; ({ids}) > {harness.here}/inside; exit 7"
    tool = started(["sh", "-c", script], "--user", name).finish(7)
    same_counts(tool, calls_in(harness.here / "started.truth"))
    groups = " ".join(map(str, os.getgrouplist(other_user.pw_name, other_user.pw_gid)))
    equal((harness.here / "inside").read_text().splitlines(), [
        *[str(other_user.pw_uid)] * 2, str(other_user.pw_gid), groups, f"{other_user.pw_dir} nobody nobody {other_user.pw_shell}",
        *[f"Cap{kind}:\t{0:016x}" for kind in ("Inh", "Prm", "Eff", "Amb")]], "identity of the program")
    equal((harness.here / "started.truth").stat().st_uid, other_user.pw_uid, "owner of a file that it wrote")


@case
def with_the_groups_of_another_user():
    """The program has the groups listed in /etc/group, and none of the tool's."""
    account, group = harness.here / "passwd", harness.here / "group"
    account.write_text("root:x:0:0::/root:/bin/sh\nann:x:4711:4712::/home/ann:\n")
    group.write_text("root:x:0:root\nown:x:4712:\nvideo:x:44:bob,ann\nrender:x:45:anna\ngpu:x:46:ann\n")
    os.chmod(harness.here, 0o777)

    def enter():
        system.private_mounts()
        system.bind(account, "/etc/passwd")
        system.bind(group, "/etc/group")
        os.setgroups([0, 5])

    started(["sh", "-c", f"({ids}) > {harness.here}/inside"], "--user", "ann", preexec=enter).finish()
    equal((harness.here / "inside").read_text().splitlines()[:5],
          ["4711", "4711", "4712", "4712 44 46", "/home/ann ann ann /bin/sh"], "identity of the program")


@case
def with_capabilities_that_are_kept():
    """Securebits that keep capabilities across a change of user have no effect."""
    os.chmod(harness.here, 0o777)
    no_setuid_fixup, securebits = 1 << 2, 28  # SECBIT_NO_SETUID_FIXUP, PR_SET_SECUREBITS

    def keep():
        check(ctypes.CDLL(None).prctl(securebits, no_setuid_fixup, 0, 0, 0) == 0, "cannot set securebits")

    started(["sh", "-c", f"({ids}) > {harness.here}/inside"], "--user", other_user.pw_name, preexec=keep).finish()
    equal((harness.here / "inside").read_text().splitlines()[5:],
          [f"Cap{kind}:\t{0:016x}" for kind in ("Inh", "Prm", "Eff", "Amb")], "capabilities")


@case
def a_program_that_the_user_may_not_execute():
    program = harness.here / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    os.chmod(harness.here, 0o755)
    tool = started([program], "--user", other_user.pw_name, json=False).finish(126)
    check(f"cannot start {program} as user nobody: Permission denied".lower() in tool.error.lower(),
          f"no reason: {tool.error}")
