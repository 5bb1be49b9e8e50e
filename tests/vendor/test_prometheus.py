# SPDX-License-Identifier: Apache-2.0
"""cudatop's metrics read by Debian's Prometheus and node_exporter; the rules and the dashboard in deploy/."""
import json
import re
import subprocess
import urllib.parse
import urllib.request

import harness
import vendor
from harness import case, check, equal, wait_until
from programs import Tool, Workload, kill_at_end
from vendor import fetched_file

deploy = harness.root / "deploy/prometheus"


def promtool(*words, text=None):
    done = subprocess.run([fetched_file("prometheus/promtool"), *words], input=text, capture_output=True, text=True)
    # Its advice on metric names does not affect the exit status.
    equal(done.returncode, 0, f"promtool {' '.join(map(str, words))}: {done.stdout}{done.stderr}")


def start(name, *words):
    log = open(harness.here / f"{name}.log", "w")
    process = subprocess.Popen([fetched_file(f"prometheus/{name}"), *words], stdout=log, stderr=log, cwd=harness.here)
    kill_at_end(process)


class Server:
    """Prometheus, which scrapes the targets of these jobs every second."""

    def __init__(self, jobs):
        self.port = vendor.free_port()
        config = {"global": {"scrape_interval": "1s"}, "rule_files": [str(deploy / "gpusnoop.rules.yml")],
                  "scrape_configs": [{"job_name": job, "honor_labels": True, "static_configs": [{"targets": [target]}]}
                                     for job, target in jobs.items()]}
        file = harness.here / "prometheus.yml"
        file.write_text(json.dumps(config))  # JSON is valid YAML
        start("prometheus", f"--config.file={file}", f"--storage.tsdb.path={harness.here / 'data'}",
              f"--web.listen-address=127.0.0.1:{self.port}")

    def answer(self, query):
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(url, timeout=20) as answer:  # fails with 400 if the query is invalid
            return json.load(answer)

    def ask(self, query):
        try:
            return self.answer(query)["data"]["result"]
        except OSError:  # not listening yet
            return []

    def figures(self, query):
        return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in self.ask(query)}


@case(tool="cudatop")
def rules():
    promtool("check", "rules", deploy / "gpusnoop.rules.yml")
    promtool("test", "rules", deploy / "gpusnoop.test.yml")


@case(tool="cudatop")
def dashboard():
    """Type-checked with Grafana's types: no unknown fields, no values of another type."""
    packages = vendor.npm("grafana", "Grafana's schema") / "node_modules"
    types = packages / "@grafana/schema/dist/types/raw/dashboard/x/types.gen"
    text = json.dumps(json.loads((deploy / "dashboard.json").read_text()))
    wrong = vendor.typed(("Dashboard", types, one) for one in (text, text.replace('"gridPos"', '"gridPoss"', 1)))
    equal(set(wrong), {1}, f"errors only in the invalid copy of the dashboard: {wrong}")
    check("gridPoss" in wrong[1], wrong[1])


@case(tool="cudatop")
def scraped():
    """Metrics scraped directly and through node_exporter match the workload."""
    fetched_file("prometheus/prometheus"), fetched_file("prometheus/prometheus-node-exporter")
    workload = Workload("name trainer; launch vecadd 1234; copy 7 bytes=1000000; copy 3 kind=2 bytes=10; sync 5; alloc a 4096; "
                        "build reduce 3; graph 11; touch {dir}/done; wait {dir}/end")
    folder = harness.here / "textfiles"
    folder.mkdir()
    tool = Tool("-p", workload.pid, "--by", "comm", "--listen", "0", "--textfile", folder / "gpusnoop.prom", "-i", "0.5", json=False)
    address = wait_until(lambda: re.search(r"127\.0\.0\.1:\d+", tool.error), "an address")[0]
    exporter = f"127.0.0.1:{vendor.free_port()}"
    start("prometheus-node-exporter", f"--web.listen-address={exporter}", "--collector.disable-defaults",
          "--collector.textfile", f"--collector.textfile.directory={folder}")
    server = Server({"cudatop": address, "node": exporter})
    workload.go()
    truth = {"kernel_launches_total": 1234, "graph_launches_total": 11, "graph_kernels_total": 33, "copies_total": 10,
             "copy_bytes_total": 7_000_030, "call_errors_total": 0}
    for job in ("cudatop", "node"):
        for family, n in truth.items():
            query = f'sum by (comm) (gpusnoop_{family}{{job="{job}"}})'
            wait_until(lambda: server.figures(query) == {(("comm", "trainer"),): n}, f"{query} is {n}: {server.ask(query)}")
    equal(server.figures('sum(gpusnoop_copy_bytes_total{job="node",direction="h2d"})'), {(): 7_000_000}, "by direction")
    equal(server.ask("node_textfile_scrape_error == 1"), [], "errors of node_exporter")
    promtool("check", "metrics", text=(folder / "gpusnoop.prom").read_text())
    # Prometheus accepts the query of each panel.
    wait_until(lambda: server.ask("namespace:gpusnoop_launches:share5m") or server.ask("gpusnoop_build_info"), "rules")
    for panel in json.loads((deploy / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "1m").replace("$namespace", ".*")
            equal(server.answer(expression)["status"], "success", expression)
    (harness.here / "end").touch()
    workload.wait()
    tool.finish()
    check(not (folder / "gpusnoop.prom").exists(), "the textfile still exists after the tool has exited")
