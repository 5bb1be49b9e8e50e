# SPDX-License-Identifier: Apache-2.0
"""Generates recordings of a fleet in the tools' format. The results of queries on them are known. test_fleet.py
checks that the tools print all keys of these recordings."""
import datetime
import gzip
import pathlib
import zlib

TEAMS = ("search", "speech", "vision", "robots", "ads")
KERNELS = ("ampere_sgemm_128x64_nn", "flash_fwd_kernel", "void at::native::vectorized_elementwise_kernel<4>(int)",
           "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "rms_norm", "rotary_embedding")
COMMANDS = ("NV_ESC_RM_CONTROL", "NV_ESC_RM_ALLOC", "UVM_MAP_EXTERNAL_ALLOCATION")
GPUS, PRICE = 8, 2_950_000      # GPUs per host; millionths of a dollar per GPU hour
LATE, STEP = 20_000_000, 100_000_000
INTERVAL = 10_000_000_000
BEGAN = datetime.datetime(2026, 11, 26, 8, tzinfo=datetime.timezone.utc)

# Numbers of hosts with unusual behaviour.
WAITS_LEAST, SLOW_DRIVER, GROWS, SLOW_COHORT, LATE_HOST = 42, 111, 17, 3, 1
WITH_STATE = 9, 20  # hosts on which gpuspend also runs with --state


def noise(*seed):
    """A reproducible number from 0 to 1."""
    return zlib.crc32(repr(seed).encode()) / 2**32


def at(ns, host=0):
    """Time by the host's clock; clocks of hosts differ by seconds."""
    moment = BEGAN + datetime.timedelta(microseconds=ns // 1000 + (host % 7) * 1_000_003)
    return moment.isoformat(timespec="microseconds")


def name_of(host):
    return f"node-{host:03}"


class Recording:
    """A recording as --record writes it. write() may split, compress or truncate it."""

    def __init__(self, folder, host, tool, command_line, name=None):
        self.path, self.host, self.number = folder / name_of(host) / f"{name or tool}.json", host, host
        self.run = f"{zlib.crc32(f'{name or tool} {host}'.encode()):08x}{host:04x}"
        self.origin = (f'"run":"{self.run}","host":"{name_of(host)}","boot_id":"{host:08x}-0000-4000-8000-000000000000",'
                      f'"tool":"{tool}","schema":1')
        self.start = (f'{{"type":"start",{self.origin},"version":"0.9","command_line":"{tool} {command_line}",'
                      f'"time":"{at(0, host)}","monotonic_ns":1000}}')
        self.lines = []

    def row(self, ns, fields, kind="row"):
        self.lines.append(f'{{"type":"{kind}",{self.origin},"time":"{at(ns, self.host)}",{fields}}}')

    def write(self):
        """Depending on the host: plain, in two files, compressed, killed during compression, or truncated within a
        line."""
        self.path.parent.mkdir(exist_ok=True)
        text = lambda lines: "".join(f"{line}\n" for line in [self.start, *lines])
        packed = self.path.with_name(f"{self.path.name}.gz")
        half = len(self.lines) // 2
        match self.number % 5:
            case 0:
                self.path.write_text(text(self.lines))
            case 1:
                self.path.with_name(f"{self.path.name}.1").write_text(text(self.lines[:half]))
                self.path.write_text(text(self.lines[half:]))
            case 2:
                packed.with_name(f"{packed.name}.1").write_bytes(gzip.compress(text(self.lines[:half]).encode(), 1))
                packed.write_bytes(gzip.compress(text(self.lines[half:]).encode(), 1))
            case 3:
                packer = zlib.compressobj(1, wbits=31)
                packed.write_bytes(packer.compress(text(self.lines).encode()) + packer.flush(zlib.Z_SYNC_FLUSH))
            case 4:
                self.path.write_text(text(self.lines[:half]) + self.lines[0][:-30] + "\n" + text(self.lines[half:]) +
                                     self.lines[0][:40])
        return len(self.lines) + 1


class Truth:
    def __init__(self):
        self.lines, self.launched = 0, dict.fromkeys(KERNELS, 0)
        self.spend, self.total, self.unallocated = {}, [0, 0, 0], 0


def spend(folder, host, intervals, truth):
    """A row per minute and team. Used, idle and unallocated time add up exactly to the devices' time."""
    out, cost = Recording(folder, host, "gpuspend", "--teams t --prices p --by team --record gpuspend.json 60"), lambda ns: ns * PRICE // 3_600_000_000_000
    for minute in range(-(-intervals * 10 // 60)):
        ns = 60_000_000_000
        base = f'"interval_ns":{ns},"monotonic_ns":{1000 + ns * (minute + 1)},'
        money = lambda us, idle=None: f'"cost_micros":{us},' + (f'"idle_cost_micros":{idle},' if idle is not None else "") + '"currency":"USD"'
        sums = [0, 0, 0, 0]  # used ns, idle ns, cost of used time, cost of idle time
        for team in {TEAMS[host % 5], TEAMS[host * 3 % 5]}:
            used, idle = int(2.5 * ns * noise(host, team, minute)), int(1.4 * ns * noise(team, host))
            both = cost(used), cost(idle)
            out.row(ns * (minute + 1), f'{base}"of":"tenant","team":"{team}","devices":4,"device_time_ns":{used},"used_ns":{used},'
                    f'"idle_ns":{idle},"allocated_ns":{used + idle},"resident_ns":{used},"driving_ns":{used},"launches":5,{money(*both)}')
            mine = truth.spend.setdefault(team, [0, 0, 0, 0])
            for i, figure in enumerate((used, idle, *both)):
                mine[i] += figure
                sums[i] += figure
        unallocated = GPUS * ns - sums[0] - sums[1]
        out.row(ns * (minute + 1), f'{base}"of":"idle","device_time_ns":{sums[1]},{money(sums[3])}')
        out.row(ns * (minute + 1), f'{base}"of":"unallocated","device_time_ns":{unallocated},{money(cost(unallocated))}')
        out.row(ns * (minute + 1), f'{base}"of":"total","devices":{GPUS},"device_time_ns":{GPUS * ns},"used_ns":{sums[0]},'
                f'"idle_ns":{sums[1]},{money(sums[2] + sums[3] + cost(unallocated), sums[3])}')
        truth.unallocated += unallocated
        truth.total[0] += GPUS * ns
    truth.lines += out.write()


def state(folder, host, intervals, truth):
    """Rows with totals since the state file was created."""
    out = Recording(folder, host, "gpuspend", "--state accounts --record accounts.json 60", "accounts")
    for minute in range(1, 3):
        out.row(60_000_000_000 * minute, f'"interval_ns":60000000000,"of":"total","devices":{GPUS},"device_time_ns":{10**15 * minute}')
    truth.lines += out.write()


def top(folder, host, intervals, truth):
    """Eight processes per host. On hosts below 64 they are ranks of one job; on others they belong to a service that
    becomes slower halfway."""
    out = Recording(folder, host, "cudatop", "--by pid --record cudatop.json 10")
    trains = host < 64
    for number in range(1, intervals + 1):
        late = number > intervals // 2
        for gpu in range(GPUS):
            share = 0.02 if (host, gpu) == (WAITS_LEAST, 5) else 0.4 + 0.1 * noise(host, gpu, number)
            rate = 1000 if trains else (700 if late else 1000) + host % 10
            memory = 40_000_000_000 + (number * 50_000_000 if (host, gpu) == (GROWS, 2) else 0)
            where = f'"namespace":"{"train" if trains else "serving"}","pod":"llm-{host * GPUS + gpu}"'
            out.row(number * INTERVAL, f'"interval_ns":{INTERVAL},"monotonic_ns":{1000 + number * INTERVAL},"by":"pid","pid":{4000 + gpu},'
                    f'"comm":"python3",{where},"launches":{rate * 10},"memory_bytes":{memory},"blocked_ns":{int(share * INTERVAL)},"waits":500,'
                    f'"graph_launches":0,"graph_kernels":0,"copies":100,"errors":0')
    truth.lines += out.write()


def kernels(folder, host, intervals, truth):
    out = Recording(folder, host, "cudalaunch", "--by kernel --record cudalaunch.json 10")
    for number in range(1, intervals + 1):
        for i, kernel in enumerate(KERNELS):
            n = 100 * (i + 1) + int(50 * noise(host, number, i))
            truth.launched[kernel] += n
            out.row(number * INTERVAL, f'"interval_ns":{INTERVAL},"monotonic_ns":{1000 + number * INTERVAL},"kernel":"{kernel}","launches":{n}')
    truth.lines += out.write()


def driver(folder, host, intervals, truth):
    out = Recording(folder, host, "nvioctl", "--record nvioctl.json 10")
    for number in range(1, intervals + 1):
        for command in COMMANDS:
            slow = 8 if (host, command) == (SLOW_DRIVER, COMMANDS[0]) and number > intervals // 2 else 1
            out.row(number * INTERVAL, f'"interval_ns":{INTERVAL},"monotonic_ns":{1000 + number * INTERVAL},"calls":100,"errors":0,'
                    f'"total_ns":{100 * slow * int(9000 + 2000 * noise(host, command, number))},"command":"{command}"')
    truth.lines += out.write()


def collectives(folder, hosts, per_host, n, communicator, late, lines):
    """late(sequence, rank): lateness of that rank in nanoseconds. The last rank does not wait."""
    ranks = hosts * per_host
    for sequence in range(1, n + 1):
        arrivals = [late(sequence, rank) + int(300_000 * noise(sequence, rank)) for rank in range(ranks)]
        for rank, offset in enumerate(arrivals):
            host = rank // per_host
            mine = arrivals[host * per_host:(host + 1) * per_host]
            ns = sequence * STEP + offset
            lines[host].row(ns, f'"time_ns":{7_000_000_000 * (host + 1) + ns},"pid":{5000 + rank},"tid":{5000 + rank},"comm":"python3",'
                            f'"communicator":"{communicator}","sequence":{sequence},"rank":{rank},"device":{rank % per_host},'
                            f'"ranks_here":{per_host},"ranks":{ranks},"join":"exact","op":"AllReduce","bytes":4096,'
                            f'"offset_ns":{offset - min(mine)},"last_rank":{arrivals.index(max(mine))},"late_ns":0,"skew_ns":{max(mine) - min(mine)},'
                            f'"sync_wait_ns":{max(arrivals) - offset + 50_000}', kind="event")


def make(folder, hosts=200, intervals=268):
    """Writes all recordings. Returns the expected results."""
    folder, truth = pathlib.Path(folder), Truth()
    folder.mkdir(parents=True, exist_ok=True)
    for host in range(hosts):
        for tool in spend, top, kernels, driver:
            tool(folder, host, intervals, truth)
        if host in WITH_STATE:
            state(folder, host, intervals, truth)
    lines = [Recording(folder, host, "ncclwait", "-e --record ncclwait.json") for host in range(8)]
    # Eight ranks on two hosts: rank 5 is late once. 64 ranks on eight hosts: one host is always late.
    collectives(folder, 2, 4, 20, "5e5e5e5e5e5e5e5e", lambda sequence, rank: 290_000_000 if (sequence, rank) == (7, 5) else 0, lines)
    collectives(folder, 8, 8, 100, "c0c0c0c0c0c0c0c0", lambda sequence, rank: LATE if rank // 8 == SLOW_COHORT else 0, lines)
    truth.lines += sum(recording.write() for recording in lines)
    return truth
