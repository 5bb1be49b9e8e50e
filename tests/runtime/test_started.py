# SPDX-License-Identifier: Apache-2.0
"""Programs that the tool starts itself: -- PROGRAM ARGS."""
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
    """A program that launches at once is counted whole, though nobody has mapped its library before."""
    tool = started(workload(calls), "--attach", way)
    same_counts(tool.finish(), calls_in(harness.here / "started.truth"))


@case(each={"usual": None, "ignore_and_block_signals": ignore_and_block_signals})
def children_and_status(preexec):
    """What a script starts is counted once its library is mapped, and the status is the script's. The script has the
    limits, signals, capabilities and descriptors of whoever starts the tool."""
    asked = "ulimit -n; grep -E 'Sig(Blk|Ign)|CapEff' /proc/self/status; ls /proc/self/fd"
    words = " ".join(f"'{word}'" for word in workload(f"dlopen; sleep 300; {calls}"))
    script = f"{words}; ({asked}) > {harness.here}/inside; exit 7"
    tool = started(["sh", "-c", script], preexec=preexec).finish(7)
    same_counts(tool, calls_in(harness.here / "started.truth"))
    subprocess.run(["sh", "-c", f"({asked}) > {harness.here}/outside"], stdin=subprocess.DEVNULL,
                   capture_output=True, check=True, preexec_fn=preexec)
    equal((harness.here / "inside").read_text(), (harness.here / "outside").read_text(), "what the program has")


@case
def ctrl_c():
    """A signal that the tool alone gets reaches the program, too, and is its status; the report is printed."""
    tool = started(["sleep", "60"])
    tool.process.send_signal(signal.SIGINT)
    tool.finish(128 + signal.SIGINT)
    check(tool.of_type("end"), "a report")


@case
def the_tool_is_killed():
    """A program that is still held does not stay behind: leftovers would find it."""
    tool = started(["sleep", "60"], banner=False)
    tool.process.kill()
    tool.process.wait()


# --- as another user -------------------------------------------------------------------------------------------------

nobody = pwd.getpwnam("nobody")
ids = ("id -u; id -ru; id -g; id -G; echo $HOME $USER $LOGNAME $SHELL; "
       "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status")


@case(each={"by_name": nobody.pw_name, "by_number": str(nobody.pw_uid)})
def as_another_user(name):
    """It has that user's identity for good, and is counted from its first call; the status is its own."""
    os.chmod(harness.here, 0o777)
    words = " ".join(f"'{word}'" for word in workload(f"dlopen; sleep 300; {calls}"))
    script = f"{words}; ({ids}) > {harness.here}/inside; exit 7"
    tool = started(["sh", "-c", script], "--user", name).finish(7)
    same_counts(tool, calls_in(harness.here / "started.truth"))
    groups = " ".join(map(str, os.getgrouplist(nobody.pw_name, nobody.pw_gid)))
    equal((harness.here / "inside").read_text().splitlines(), [
        *[str(nobody.pw_uid)] * 2, str(nobody.pw_gid), groups, f"{nobody.pw_dir} nobody nobody {nobody.pw_shell}",
        *[f"Cap{kind}:\t{0:016x}" for kind in ("Inh", "Prm", "Eff", "Amb")]], "what the program is")
    equal((harness.here / "started.truth").stat().st_uid, nobody.pw_uid, "owner of a file that it wrote")


@case
def with_the_groups_of_another_user():
    """Those that /etc/group lists, and none of the tool's."""
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
          ["4711", "4711", "4712", "4712 44 46", "/home/ann ann ann /bin/sh"], "what the program is")


@case
def with_capabilities_that_are_kept():
    """Securebits that keep capabilities over a change of the user keep none."""
    os.chmod(harness.here, 0o777)
    no_setuid_fixup, securebits = 1 << 2, 28  # SECBIT_NO_SETUID_FIXUP, PR_SET_SECUREBITS

    def keep():
        check(ctypes.CDLL(None).prctl(securebits, no_setuid_fixup, 0, 0, 0) == 0, "securebits are set")

    started(["sh", "-c", f"({ids}) > {harness.here}/inside"], "--user", nobody.pw_name, preexec=keep).finish()
    equal((harness.here / "inside").read_text().splitlines()[5:],
          [f"Cap{kind}:\t{0:016x}" for kind in ("Inh", "Prm", "Eff", "Amb")], "capabilities")


@case
def what_another_user_may_not_execute():
    program = harness.here / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    os.chmod(harness.here, 0o755)
    tool = started([program], "--user", nobody.pw_name, json=False).finish(126)
    check(f"cannot start {program} as user nobody: Permission denied".lower() in tool.error.lower(),
          f"why: {tool.error}")


@case
def users_that_make_no_sense():
    for arguments, code, words in ((["--user", "nosuchuser"], 2, "there is no user 'nosuchuser'"),
                                   (["--user", "4294967296"], 2, "there is no user '4294967296'"),
                                   (["--user", ""], 2, "there is no user ''")):
        tool = started(["true"], *arguments, json=False, banner=False, attaches=False).finish(code)
        check(words in tool.error, f"{arguments}: {tool.error}")
    tool = Tool("--user", "root", json=False, banner=False, attaches=False).finish(2)
    check("add -- PROGRAM" in tool.error, f"without a program: {tool.error}")
