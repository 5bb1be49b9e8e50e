# SPDX-License-Identifier: Apache-2.0
"""The manifests of deploy/kubernetes, validated with the schemas of Kubernetes and the Prometheus operator; and the
Slurm scripts."""
import gzip
import json
import os
import pathlib
import subprocess

import harness
import system
import vendor
from containers import Cgroup, need_hierarchy
from harness import case, check, equal, wait_until
from programs import Workload

deploy = harness.root / "deploy/kubernetes"


def validated(*files):
    done = subprocess.run(["node", harness.root / "tests/vendor/validate.mjs", vendor.npm("kubernetes", "Kubernetes' schemas"), *files],
                          capture_output=True, text=True)
    equal(done.returncode, 0, f"validate.mjs: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


@case(tool="cudatop")
def manifests():
    objects = validated(deploy / "gpusnoop.yaml", deploy / "servicemonitor.yaml")
    equal([(one["kind"], one["wrong"]) for one in objects],
          [(kind, "") for kind in ("Namespace", "DaemonSet", "Service", "NetworkPolicy", "ServiceMonitor")], "errors by object")
    of = {one["kind"]: one["object"] for one in objects}
    pod = of["DaemonSet"]["spec"]["template"]["spec"]
    equal({key for key in pod if key.startswith("host")}, {"hostPID"}, "namespaces shared with the host")
    check("volumes" not in pod, "the pod has volumes of the host")
    for container in pod["containers"]:
        rights = container["securityContext"]
        equal((rights["privileged"], rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"], rights["capabilities"]["drop"]),
              (False, False, True, ["ALL"]), f"rights of {container['name']}")
        options = [word for word in container["args"] if word.startswith("--")]
        help_text = subprocess.run([harness.build / container["name"], "--help"], capture_output=True, text=True, check=True).stdout
        check(all(option in help_text for option in options), f"unknown options of {container['name']}: {options}")
    ports = {port["name"] for container in pod["containers"] for port in container["ports"]}
    equal({port["targetPort"] for port in of["Service"]["spec"]["ports"]}, ports, "ports of the service")
    equal({(endpoint["port"], endpoint["honorLabels"]) for endpoint in of["ServiceMonitor"]["spec"]["endpoints"]},
          {(port, True) for port in ports}, "scraped ports")
    equal(of["Service"]["metadata"]["labels"], of["ServiceMonitor"]["spec"]["selector"]["matchLabels"], "labels that select the service")

    def declaration(one, text):
        place = "@kubernetes-models/prometheus-operator" if "coreos" in one["apiVersion"] else "kubernetes-models"
        return f"I{one['kind']}", (vendor.fetched / "kubernetes/node_modules" / place / one["apiVersion"] / one["kind"]).resolve(), text

    all_known = [declaration(one, json.dumps(one)) for one in of.values()]
    misspelt = {"DaemonSet": ("hostPID", "hostPid"), "ServiceMonitor": ("honorLabels", "honorLabel"), "NetworkPolicy": ("policyTypes", "policyType")}
    none_known = [declaration(of[kind], json.dumps(of[kind]).replace(*names)) for kind, names in misspelt.items()]
    unknown = vendor.typed(all_known + none_known)
    equal(set(unknown), set(range(len(all_known), len(all_known + none_known))), f"objects with unknown fields: {unknown}")
    for text, (_, wrong) in zip(unknown.values(), misspelt.values()):
        check(wrong in text, text)

    broken = harness.here / "broken.yaml"
    broken.write_text((deploy / "gpusnoop.yaml").read_text().replace("hostPID: true", "hostPID: 7").replace("drop: [ALL]", "drop: ALL"))
    wrong = next(one["wrong"] for one in validated(broken) if one["kind"] == "DaemonSet")
    check("hostPID" in wrong and "drop" in wrong, f"the errors of an invalid manifest are incomplete: {wrong}")


@case(each={"job_id": False, "sluid": True}, tool="cudatop", alone=True)
def slurm_job(by_sluid):
    """The recording from prolog to epilog contains the job's launches, and no process is left behind."""
    need_hierarchy("v2")
    job = 7_000_000 + os.getpid() % 1_000_000
    sluid = f"s000000{job}"
    name = sluid if by_sluid else str(job)
    group = Cgroup("v2", f"system.slice/slurmstepd.scope/{sluid if by_sluid else f'job_{job}'}/step_0/user/task_0")
    folder = harness.here / "recordings"
    environment = os.environ | {"SLURM_JOB_ID": str(job), "SLURM_JOB_GPUS": "0", "GPUSNOOP_FOLDER": str(folder),
                                "PATH": f"{harness.build}:{os.environ['PATH']}"} | ({"SLURM_JOB_SLUID": sluid} if by_sluid else {})
    run = lambda name: subprocess.run([harness.root / "deploy/slurm" / name], env=environment, check=True, timeout=60)
    workload = Workload("launch vecadd 123; sleep 100; launch saxpy 4", preexec=group.join)
    run("prolog")
    messages = folder / f"{job}.err"
    wait_until(lambda: messages.exists() and "Tracing" in messages.read_text(), "the recording has begun", 60)
    pid = int((folder / f"{job}.pid").read_text())
    workload.go().wait()
    run("epilog")
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists() or "Z" in system.stat_fields(pid)[:1], "the tool has exited", 60)
    rows = [row for row in map(json.loads, gzip.open(folder / f"{job}.json.gz", "rt")) if row["type"] == "row" and row.get("pid") == workload.pid]
    equal((sum(row["launches"] for row in rows), {row.get("slurm_job") for row in rows}), (127, {name}), "launches of the job")
    equal(subprocess.run([harness.root / "deploy/slurm/epilog"], env=environment).returncode, 0, "exit status of an epilog without a recording")
