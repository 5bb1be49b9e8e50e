# SPDX-License-Identifier: Apache-2.0
"""ncclwait's events of single collectives, from one host or joined from several hosts; and its histograms."""
import collections
import json

import harness
from harness import check, equal
from programs import Tool
from ranks import Ranks, case, rounds


def trace(count, script, *arguments, **options):
    ranks = Ranks(count, script)
    tool = Tool(*ranks.targets, *arguments, **options)
    ranks.go().wait()
    return tool.finish(), ranks.calls()


rank_2_is_late = "comm A; repeat 20; barrier; only 2; sleep 5; end; call A ncclAllReduce 1 count=5000; complete; end; destroy A"


def bars_of_collectives(timeline, events):
    """A bar lasts from the arrival of its rank until the last rank arrives."""
    begin = {event["id"]: event for event in json.loads(timeline.read_text()) if event["ph"] == "b"}
    end = {event["id"]: event for event in json.loads(timeline.read_text()) if event["ph"] == "e"}
    equal((len(begin), set(begin)), (len(events), set(end)), "bars")
    bars = sorted((bar["tid"], bar["args"]["sequence"], round(1e3 * (end[number]["ts"] - bar["ts"]))) for number, bar in begin.items())
    for bar, event in zip(bars, sorted(events, key=lambda event: (event["tid"], event["sequence"]))):
        waited = event["skew_ns"] - event["offset_ns"]
        check(bar[:2] == (event["tid"], event["sequence"]) and abs(bar[2] - waited) <= 2000, f"{bar} of {event}")


@case
def lines():
    """JSON has an event for each rank: its time, its offset from the first rank, its wait, and its call stack."""
    timeline = harness.here / "timeline.json"
    tool, calls = trace(4, rank_2_is_late, "-e", "-U", "--trace", timeline)
    bars_of_collectives(timeline, tool.events)
    callers = [" ".join(event.get("frames", [])) for event in tool.events]
    check(all(callers) and "::call(" in callers[-1] and "(ranks)" in callers[-1], f"unexpected callers: {callers[-1]}")
    by_call = {(event["sequence"], event["rank"]): event for event in tool.events}
    equal(len(by_call), len(tool.events), "different events")
    late = short = 0
    for number, one in enumerate(rounds(calls), 1):
        events = [by_call.pop((number, call["rank"])) for call in one]
        first = min(event["time_ns"] for event in events)
        last = max(events, key=lambda event: event["time_ns"])
        for call, event in zip(one, events):
            check(call["entry_ns"] <= event["time_ns"] <= call["return_ns"], f"the event is outside of the call: {call}, {event}")
            equal((event["pid"], event["op"], event["bytes"], event["join"]), (call["pid"], "AllReduce", 20000, "exact"), "fields of the event")
            equal((event["offset_ns"], event["skew_ns"], event["last_rank"]),
                  (event["time_ns"] - first, last["time_ns"] - first, last["rank"]), f"{event}")
            short += last["time_ns"] - event["time_ns"] - 1_000_000 > event["sync_wait_ns"]
        # Another rank may be even later, if it had no CPU for longer than rank 2 slept.
        others = [call["return_ns"] for call in one if call["rank"] != 2]
        if max(others) < next(call["entry_ns"] for call in one if call["rank"] == 2):
            equal(last["rank"], 2, "last rank")
            late += 1
    check(late, "rank 2 was never last")
    check(short <= len(calls) / 10, f"{short} of {len(calls)} waits are shorter than the time until the last rank arrived")
    equal(by_call, {}, "events without a call")


@case
def lines_in_text():
    tool, _ = trace(3, "comm A; only 1; sleep 20; end; call A ncclAllReduce 1 count=5000; call A ncclAllGather 1; barrier; destroy A",
                    "-e", json=False)
    header, first, second = tool.text.splitlines()
    check(header.split()[-5:] == ["OP", "SIZE", "LAST", "LATE(us)", "OFFSETS(us)"], header)
    equal((first.split()[5:9], second.split()[5:7]), (["1", "AllReduce", "19.5K", "1"], ["2", "AllGather"]), "lines")
    check(all(f" {rank}:+" in first for rank in range(3)), first)


def rounds_of(files):
    """Events of all hosts, by communicator and collective."""
    joined = collections.defaultdict(list)
    for events in files:
        for event in events:
            joined[event["communicator"], event["sequence"]].append(event)
    return joined


def straggler(ranks):
    """The last rank of a collective, and the time that the others waited for it. It is the rank with the shortest wait:
    durations are compared, since each host has its own clock."""
    by_wait = sorted((event["sync_wait_ns"], event["rank"]) for event in ranks)
    return by_wait[0][1], by_wait[len(by_wait) // 2][0] - by_wait[0][0]


@case
def two_hosts():
    """Each host has half of the ranks, and their clocks differ by 5 s. Rank 5, on the second host, is 290 ms late for
    one collective. The events of the first host alone do not show this."""
    job = Ranks(8, """comm A; repeat 6; call A ncclAllReduce 1 count=1000; complete; end; only 5; sleep 290; end
                      call A ncclAllReduce 1 count=1000; complete; repeat 5; call A ncclAllReduce 1 count=1000; complete; end; destroy A""")
    hosts = [Tool("-p", ",".join(pids), "-e") for pids in (job.pids[:4], job.pids[4:])]
    job.go().wait()
    first, second = (tool.finish().events for tool in hosts)
    for event in second:
        event["time_ns"] += 5_000_000_000
    equal({(event["ranks_here"], event["ranks"]) for event in first + second}, {(4, 8)}, "half of the ranks each")
    joined = rounds_of([first, second])
    equal((len(joined), {len(ranks) for ranks in joined.values()}), (12, {8}), "collectives, and their ranks")
    late = {number: straggler(ranks) for (_, number), ranks in joined.items()}
    rank, wait_ns = late.pop(7)
    check(rank == 5 and 280e6 < wait_ns < 400e6, f"not rank 5 with about 290 ms, but rank {rank} with {wait_ns} ns")
    check(max(wait for _, wait in late.values()) < 150e6, f"other late ranks: {late}")
    here = [event for event in first if event["sequence"] == 7]
    check(max(event["skew_ns"] for event in here) < 100e6 and min(event["sync_wait_ns"] for event in here) > 280e6,
          f"the other host must see a wait, but no late rank: {here}")
