# SPDX-License-Identifier: Apache-2.0
"""scripts/fleet on DuckDB and ClickHouse: generated recordings of 200 hosts with known answers, and real recordings."""
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import time

import fleet
import harness
import system
import vendor
from harness import Skip, case, check, equal, wait_until
from programs import Tool, Workload, kill_at_end
from ranks import Ranks

scripts = harness.root / "scripts/fleet"
engines = ("duckdb", "clickhouse")
queries = sorted(path.stem for path in (scripts / "queries").iterdir())

# Columns that the lines of every tool have. All other columns that a view reads are columns of its tool.
common_columns = {"host", "moment", "interval_ns", "job", "time_ns"}
# 268 intervals make a million lines
intervals = int(os.environ.get("GPUSNOOP_FLEET_INTERVALS", 12))


def answers(engine, query, *recordings, at="2026-11-26T00:00:00Z"):
    """Runs gpusnoop-fleet. Returns {query: rows}."""
    installed = vendor.npm("engines", "DuckDB and ClickHouse")
    folder = harness.here / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / engine
    input_of = {"duckdb": "", "clickhouse": 'for last; do :; done; exec <"$last"\n'}[engine]
    words = shlex.join(["node", str(pathlib.Path(vendor.__file__).with_name("engine.mjs")), str(installed), engine])
    program.write_text(f"#!/bin/sh\n{input_of}exec {words}\n")
    program.chmod(0o755)
    done = subprocess.run([scripts / "gpusnoop-fleet", "--engine", engine, "--json", "--at", at, query, *recordings],
                          capture_output=True, text=True, env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
    equal(done.returncode, 0, f"gpusnoop-fleet {engine} {query}: {done.stderr[-3000:]}")
    print(f"   {engine}: {', '.join(done.stderr.splitlines())}")
    rows, name = {}, query
    for row in map(json.loads, done.stdout.splitlines()):
        if set(row) == {"query"}:
            name = row["query"]
            rows[name] = []
        else:
            # One engine prints 64-bit integers as text.
            rows.setdefault(name, []).append({key: int(value) if isinstance(value, str) and value.isdigit() and key != "version"
                                              else value for key, value in row.items()})
    return rows


def near(got, want, description):
    check(got is not None and math.isclose(got, want, rel_tol=1e-9), f"{description}: got {got}, want {want}")


@case(tool="cudatop", timeout=900)
def known_answers():
    """Recordings that have a second file, are compressed, are truncated within a line, or were never finished."""
    folder = harness.here / "recordings"
    truth = fleet.make(folder, 200, intervals)
    print(f"   {truth.lines} lines of 200 hosts")
    for engine in engines:
        answers_are_known(engine, folder, truth)


def answers_are_known(engine, folder, truth):
    half = fleet.at(fleet.INTERVAL * (intervals // 2) + 7_000_000_000)
    every = harness.here / "every.sql"
    every.write_text("SELECT count(*) AS n, count(DISTINCT host) AS hosts FROM cudatop_rows;")
    got = answers(engine, ",".join([*queries, str(every)]), folder, at=half.replace("+00:00", "Z"))
    equal(got.pop(str(every)), [{"n": 200 * 8 * intervals, "hosts": 200}], "rows, each exactly once")
    equal(set(got), set(queries), "queries with an answer")

    money = {row["whose"]: row for row in got["spend"]}
    left_out = money.pop("(left out: runs with --state: 2)")
    equal(set(left_out.values()) - {"(left out: runs with --state: 2)"}, {None}, "unknown figures of runs with --state")
    equal(set(money), {*truth.spend, "(unallocated)", "(total)"}, "accounts")
    for team, (used, idle, cost, idle_cost) in truth.spend.items():
        row = money[team]
        for key, want in ("used_hours", used / 3.6e12), ("idle_hours", idle / 3.6e12), ("cost", cost / 1e6), ("idle_cost", idle_cost / 1e6):
            near(row[key], want, f"{team}: {key}")
    near(money["(unallocated)"]["unallocated_hours"], truth.unallocated / 3.6e12, "unallocated hours")
    near(sum(row["used_hours"] + row["idle_hours"] + row["unallocated_hours"] for account, row in money.items() if account != "(total)"),
         truth.total[0] / 3.6e12, "all hours")
    near(sum(row["cost"] + row["idle_cost"] for account, row in money.items() if account != "(total)"), money["(total)"]["cost"], "total cost")

    equal({row["kernel"]: row["launched"] for row in got["kernels"]}, truth.launched, "launches")
    equal({row["hosts"] for row in got["kernels"]}, {200}, "hosts")

    one = lambda query: [{key: row[key] for key in keys} for row in got[query]] if (keys := list(only[query])) else None
    grown = (intervals - 1) * 50_000_000
    only = {
        "memory": {"host": "node-017", "pid": 4002, "whose": f"train/llm-{17 * 8 + 2}", "first_bytes": 40_050_000_000,
                   "last_bytes": 40_050_000_000 + grown},
        "waiting": {"job": "train/llm", "host": "node-042", "pid": 4005, "of_ranks": 512},
        "driver": {"host": "node-111", "command": fleet.COMMANDS[0], "called": 100 * intervals, "of_hosts": 200},
    }
    for query, want in only.items():
        equal(one(query), [want], query)
    slow, = got["driver"]
    check(7 < slow["after_us"] / slow["before_us"] < 9 and 9 < slow["usual_us"] < 11, f"unexpected times of the slow driver: {slow}")

    # Rank 5 is late by 290 ms, on a host whose clock differs by a second.
    first = got["stragglers"][0]
    equal((first["communicator"], first["sequence"], first["late_rank"], first["late_host"], first["of_ranks"]),
          ("5e5e5e5e5e5e5e5e", 7, 5, "node-001", 8), "late rank")
    check(289 < first["late_ms"] < 291, f"unexpected lateness: {first}")
    cohort = got["cohorts"][0]
    equal((cohort["communicator"], cohort["host"], cohort["came_last_percent"]), ("c0c0c0c0c0c0c0c0", "node-003", 100), "slow host")
    wasted = 100 * (56 * fleet.LATE) / (64 * fleet.STEP)  # of 64 ranks, 56 wait
    check(abs(cohort["wasted_percent"] - wasted) < 1, f"unexpected wasted time: {cohort}, want about {wasted} %")
    serving, training = got["rollout"]
    equal((serving["job"], serving["hosts"], serving["hosts_down"], serving["hosts_up"]), ("serving/llm", 136, 136, 0), "rollout")
    check(1000 <= serving["kernels_before"] < 1010 and 700 <= serving["kernels_after"] < 710, f"unexpected rates: {serving}")
    equal((training["hosts"], training["hosts_down"], training["hosts_up"]), (64, 0, 0), "the job without a rollout")


stand_in_ssh = r'''#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
late) exec sleep 600 ;;
refused) printf '\033]0;title\007Connection refused\n' >&2; exit 255 ;;
fails) echo 'cudatop: needs root' >&2; exit 1 ;;
hostile) printf '%s\n' '{"type":"start","run":"0","run":"0"}' '{"type":"start","run":"0","host":"node1","host":"node2"}'
    printf '{"type":"row","run":"0","host":"x","comm":"\033[2J"}\n\377\n{"type":"start","run":"1","tool":"cudatop","host":"node1"}\n'
    printf '{"type":"row","run":"1","host":"node1","pid":9,"launches":1000}\n{"type":"row","run":"1","pid":9}\n{"type":"row","run":"1","cut' ;;
endless) exec yes '{"type":"row","run":"1","host":"endless","pid":1}' ;;
*) sleep 1
    printf '{"type":"start","run":"1","tool":"cudatop","host":"localhost","command_line":"cudatop"}\n'
    printf '%s\n' "$3" >>"${0%/*}/commands"
    printf '{"type":"row","run":"1","host":"localhost","time":"2026-11-26T08:00:00+00:00","interval_ns":1,"pid":1,"comm":"a","launches":%s}\n' "${2#node}" ;;
esac
'''


@case(tool="cudatop")
def ask_with_a_fake_ssh():
    """50 hosts take about as long as one; hosts that do not answer are named; no host can impersonate another."""
    folder = harness.here / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(stand_in_ssh)
    (folder / "ssh").chmod(0o755)

    def ask(hosts, *options, code):
        start = time.monotonic()
        done = subprocess.run([scripts / "ask", *options, hosts, "--", "cudatop", "-j", "it's $HOME"], capture_output=True, text=True,
                              env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
        equal(done.returncode, code, f"exit status ({done.stderr})")
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.splitlines(), time.monotonic() - start

    nodes = [f"node{n}" for n in range(50)]
    (harness.here / "hosts").write_text("# all\n" + "\n".join(nodes))
    lines, messages, seconds = ask(harness.here / "hosts", code=0)
    equal(messages, [], "messages")
    check(seconds < 30, f"50 hosts that take a second each took {seconds:.1f} s")
    equal({line["run"]: line["host"] for line in lines if line["type"] == "start"}, {f"{node}:1": node for node in nodes}, "hosts")
    equal({line["run"]: line["launches"] for line in lines if line["type"] == "row"}, {f"node{n}:1": n for n in range(50)}, "rows")
    equal(set((folder / "commands").read_text().splitlines()), {" 'cudatop' '-j' 'it'\\''s $HOME'"}, "command sent to the hosts")

    bad = ["late", "refused", "fails", "hostile", "endless"]
    lines, messages, _ = ask(",".join(["node1", *bad]), "-t", "6", code=1)
    errors = dict(line.removeprefix("ask: ").split(": ", 1) for line in messages[:-1])
    equal(errors.pop("refused"), " ]0;title Connection refused", "error of ssh, without control characters")
    equal(errors.pop("late"), "still running after 6 s; raise -t", "error of a host that hangs")
    equal(errors.pop("fails"), "exit status 1: cudatop: needs root", "error of the tool")
    equal(errors.pop("hostile"), "dropped 6 lines that are not output of a tool", "error of a host that sends other lines")
    check(set(errors) == {"endless"}, f"other hosts with errors: {errors}")
    equal(messages[-1], "ask: 4 of 6 hosts gave no answer, or an incomplete one", "summary")
    equal([line["host"] for line in lines if line["run"].startswith("hostile")], ["hostile"] * 2, "host in its lines")
    equal({line["run"].partition(":")[0] for line in lines}, {"node1", "hostile", "endless"}, "hosts with lines")
    for wrong in "-oProxyCommand=x", "a b", "":
        ask(wrong, code=2)


# For one user, who only exists in this sshd's private /etc/passwd.
sshd_config = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/me.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PidFile none
"""
nobody_uid = 65534


def sshd():
    """(path of sshd, its environment)."""
    fetched_one = (vendor.fetched / "ssh/sshd").resolve()
    program = pathlib.Path(shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") or fetched_one)
    environment = os.environ | ({"LD_LIBRARY_PATH": str(fetched_one.parent)} if program == fetched_one else {})
    if not program.exists():
        raise Skip("sshd is not installed, and could not be fetched")
    if "not found" in (needs := subprocess.run(["ldd", program], capture_output=True, text=True, env=environment).stdout):
        raise Skip(f"sshd lacks libraries: {needs}")
    if not shutil.which("ssh-keygen"):
        raise Skip("ssh is not installed")
    return program, environment


@case(tool="cudatop")
def ask_with_real_ssh():
    """Real ssh and sshd: two hosts that answer and one that does not."""
    program, environment = sshd()
    folder = harness.here
    for path in (folder, *folder.parents):
        check(os.stat(path).st_mode & 0o001 or path.is_symlink(), f"other users can enter {path}")
    for key in "host", "me":
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    os.chown(folder / "host", nobody_uid, nobody_uid)
    (folder / "passwd").write_text(f"asked:*:{nobody_uid}:{nobody_uid}::/:/bin/sh\n" + pathlib.Path("/etc/passwd").read_text())

    def as_nobody():
        system.private_mounts()
        system.bind(folder / "passwd", "/etc/passwd")
        os.setgroups([])
        os.setgid(nobody_uid)
        os.setuid(nobody_uid)

    ports = {host: vendor.free_port() for host in ("one", "two", "gone")}
    for host in "one", "two":
        config = folder / f"{host}.config"
        config.write_text(sshd_config.format(port=ports[host], folder=folder))
        with open(folder / f"{host}.log", "w") as log:
            process = subprocess.Popen([program, "-D", "-e", "-f", config], stderr=log, env=environment, preexec_fn=as_nobody)
        kill_at_end(process)
        wait_until(lambda: "listening" in (folder / f"{host}.log").read_text() or process.poll() is not None, "sshd listens")
        equal(process.poll(), None, f"sshd of {host}: {(folder / f'{host}.log').read_text()}")
    (folder / "config").write_text("".join(f"Host {host}\n HostName 127.0.0.1\n Port {port}\n" for host, port in ports.items()) +
                                   f"Host *\n User asked\n IdentityFile {folder}/me\n IdentitiesOnly yes\n"
                                   f" UserKnownHostsFile {folder}/known\n StrictHostKeyChecking accept-new\n LogLevel ERROR\n")
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    (folder / "bin/ssh").chmod(0o755)
    text = """it's $HOME `id` "a" \\ *"""
    done = subprocess.run([scripts / "ask", "one,two,gone", "--", "printf",
                           '{"type":"start","run":"1","tool":"cudatop","host":"x","port":"%s","text":"%s"}\n',
                           "at", text.replace('"', "'")], capture_output=True, text=True,
                          env=os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"})
    equal(done.returncode, 1, f"exit status ({done.stderr})")
    lines = {line["run"]: line for line in map(json.loads, done.stdout.replace("\\", "\\\\").splitlines())}
    equal(set(lines), {"one:1", "two:1"}, f"hosts that answered ({done.stderr})")
    equal({line["text"] for line in lines.values()}, {text.replace('"', "'")}, "arguments received by each shell")
    gone, summary = done.stderr.splitlines()
    check(gone.startswith("ask: gone: ") and "refused" in gone, gone)
    equal(summary, "ask: 1 of 3 hosts gave no answer, or an incomplete one", "summary")


@case(tool="cudatop")
def columns():
    """Tools have all columns that the views read; both engines read the same columns; and the generated recordings only
    contain columns of the tools."""
    (harness.here / "views.sql").write_text(
        "SELECT table_name AS view_name, column_name FROM information_schema.columns WHERE table_name LIKE '%!_rows' ESCAPE '!' "
        "OR table_name LIKE '%!_lines' ESCAPE '!';")
    folder = harness.here / "recordings"
    fleet.make(folder, 8, 6)
    views = {}
    for row, in zip(*answers("duckdb", str(harness.here / "views.sql"), folder).values()):
        views.setdefault(row["view_name"].partition("_")[0], set()).add(row["column_name"])
    equal(set(views), {"cudatop", "cudalaunch", "gpuspend", "ncclwait", "nvioctl"}, "views")
    printed = {}
    for tool, read in views.items():
        lines = subprocess.run([harness.build / tool, "--columns", "json"], capture_output=True, text=True, check=True).stdout
        printed[tool] = {json.loads(line)["key"] for line in lines.splitlines()}
        equal(read - printed[tool] - common_columns, set(), f"columns that {tool} does not have")
    for path in folder.glob("*/*.json"):
        for line in path.read_text().splitlines()[1:3]:
            made = set(json.loads(line)) - {"type", "run", "host", "boot_id", "tool", "schema", "time", "time_ns", "interval_ns", "monotonic_ns", "by", "pid", "tid", "comm"}
            tool = path.stem
            equal(made - printed[tool], set(), f"keys of {path.name} that {tool} does not have")
    names = {"duckdb": r"\"?(\w+)\"?: '", "clickhouse": r"(\w+) Nullable"}
    read = {engine: set(re.findall(pattern, (scripts / f"{engine}.sql").read_text())) for engine, pattern in names.items()}
    equal(read["duckdb"], read["clickhouse"], "columns of both engines")


@case(tool="ncclwait", timeout=120)
def real_recordings():
    """Recordings by the tools, of two hosts whose clocks differ by five seconds: late rank and launches."""
    job = Ranks(8, """comm A; repeat 6; call A ncclAllReduce 1 count=1000; complete; end; only 5; sleep 290; end
                      call A ncclAllReduce 1 count=1000; complete; repeat 5; call A ncclAllReduce 1 count=1000; complete; end; destroy A""")
    recordings = [harness.here / "host0.json", harness.here / "host1.json"]
    tools = [Tool("-p", ",".join(pids), "-e", "--record", file) for pids, file in zip((job.pids[:4], job.pids[4:]), recordings)]
    job.go().wait()
    for tool in tools:
        tool.finish()
    moved = [json.loads(line) for line in recordings[1].read_text().splitlines()]
    for line in moved:
        if "host" in line:
            line["host"] = "the-other"
        if "time_ns" in line:
            line["time_ns"] += 5_000_000_000
    recordings[1].write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in moved))

    workload = Workload("launch one 5; launch two 3; launch three 1; sync 4; copy 2 bytes=100")
    for name in "cudalaunch", "cudatop":
        harness.binary = harness.build / name
        recordings.append(harness.here / f"{name}.json.gz")
        tools.append(Tool("-p", workload.pid, "--record", recordings[-1], losses=True))
    workload.go().wait()
    for tool in tools[2:]:
        tool.finish()
    (harness.here / "top.sql").write_text("SELECT sum(launches) AS launched, sum(copies) AS copied, count(DISTINCT pid) AS pids, "
                                          "count(DISTINCT host) AS hosts, count(blocked_ns) AS known FROM cudatop_rows;")
    for engine in engines:
        got = answers(engine, f"stragglers,kernels,{harness.here / 'top.sql'}", *recordings)
        late, *others = got["stragglers"]
        equal((late["sequence"], late["late_rank"], late["late_host"], late["of_ranks"]), (7, 5, "the-other", 8), f"{engine}: late rank")
        check(280 < late["late_ms"] < 400, f"{engine}: {late}")
        check(len(others) == 11 and max(row["late_ms"] for row in others) < 150, f"{engine}: another rank is late: {others}")
        equal({row["kernel"]: row["launched"] for row in got["kernels"]}, {"one": 5, "two": 3, "three": 1}, f"{engine}: launches")
        seen, = got[str(harness.here / "top.sql")]
        equal((seen["launched"], seen["copied"], seen["pids"], seen["hosts"]), (9, 2, 1, 1), f"{engine}: cudatop's rows")
        check(seen["known"], f"{engine}: waits have no times: {seen}")
