"""What an object store costs: the training process with and without, and the way from write to reader.

``python benchmarks/remote.py`` starts an S3 server (moto) of its own on loopback and writes
``results/remote.json`` and ``results/remote.md``.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
from machine import described, loads, machine, publish

from tdbg_lab.run import open_run
from tdbg_lab.store.remote import parse_url
from tdbg_lab.store.remote.objects import Objects
from tdbg_lab.store.remote.spool import Spooled, spool_path
from tdbg_lab.testing import FakeTraining

RESULTS = Path(__file__).parent / "results"
REPEATS = 2
STEPS = 100
LATENCY_STEPS = 12

TRAINING = """
import json, sys, time
import psutil, torch
import tdbg_lab as tdbg
torch.set_num_threads(1)
torch.manual_seed(0)
layers = [m for _ in range(8) for m in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 256)
store, options, steps = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
begun = time.monotonic()
handle = tdbg.attach(model, optimizer=optimizer, store=store, save_every=1, profiler=False, **options)
attach_s = time.monotonic() - begun
def step():
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
for _ in range(50):
    step()
time.sleep(3)  # the kernels are compiled in a thread: not what is measured
process, thread, wall = time.process_time(), time.thread_time(), time.monotonic()
for _ in range(steps):
    step()
process, thread, wall = time.process_time() - process, time.thread_time() - thread, time.monotonic() - wall
senders = [each for each in psutil.Process().children() if "tdbg_lab.store.remote" in each.cmdline()]
sender_s = sum(sum(each.cpu_times()[:2]) for each in senders)
sender_mb = sum(each.memory_info().rss for each in senders) / 2**20
handle.detach()
print(json.dumps({"process_ms": process / steps * 1e3, "thread_ms": thread / steps * 1e3,
                  "attach_s": attach_s, "sender_s": sender_s, "sender_mb": sender_mb, "wall_s": wall}))
"""


@contextmanager
def s3_server():
    """A server in a process of its own; yields options that lead to it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port), "-H", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    options = {
        "endpoint": f"http://127.0.0.1:{port}",
        "access_key_id": "id",
        "secret_access_key": "key",
        "region": "us-east-1",
    }
    try:
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=options["endpoint"],
            aws_access_key_id="id",
            aws_secret_access_key="key",
            region_name="us-east-1",
        )
        while True:
            try:
                client.create_bucket(Bucket="bench")
                break
            except Exception:  # noqa: BLE001 - it is starting
                time.sleep(0.2)
        yield options
    finally:
        server.terminate()
        server.wait()


def train(store: str, options: dict[str, object]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, store, json.dumps(options), str(STEPS)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return json.loads(done.stdout.splitlines()[-1])


def training_cost(options: dict[str, str], folder: Path) -> dict[str, dict[str, float]]:
    """Interleaved trainings into a folder, into the bucket, and into a bucket nobody answers for."""
    nobody = {**options, "endpoint": "http://127.0.0.1:9"}
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(REPEATS):
        for name, store, given in (
            ("folder", str(folder / f"run-{number}"), {}),
            ("bucket", f"s3://bench/run-{number}", {"storage_options": options}),
            ("outage", f"s3://bench/out-{number}", {"storage_options": nobody}),
        ):
            found.setdefault(name, []).append(train(store, given))
            for process in psutil.process_iter(["cmdline"]):  # the senders of the outage go on trying
                command = process.info["cmdline"] or []
                if "tdbg_lab.store.remote" in command and any(str(folder) in part for part in command):
                    process.terminate()
    return {
        name: {key: round(statistics.median(one[key] for one in runs), 3) for key in runs[0]}
        for name, runs in found.items()
    }


def latency(options: dict[str, str], flush_s: float, interval_s: float) -> dict[str, float]:
    """Seconds from the write of a step until a reader that asks all the time has it."""
    url = parse_url(f"s3://bench/live-{flush_s}")
    training = FakeTraining(spool_path(url), raw_every=0)
    spooled = Spooled(training.path)
    spooled.set_place(url, chief=True)
    spooled.add_writer(0)
    sender = subprocess.Popen(
        [sys.executable, "-m", "tdbg_lab.store.remote", str(training.path), "--flush", str(flush_s)],
        stdin=subprocess.PIPE,
    )
    sender.stdin.write(json.dumps(options).encode())
    sender.stdin.close()
    training.step()
    objects = Objects(url, options)
    while objects.get("run.json") is None or len(list(objects.walk())) < 3:
        time.sleep(0.1)
    run = open_run(str(url), storage_options=options)
    run._mirror._interval_s = interval_s
    written: dict[int, float] = {}
    before = sum(psutil.Process(sender.pid).cpu_times()[:2])
    begun = time.monotonic()
    seen: dict[int, float] = {}

    def read() -> None:
        while len(seen) < LATENCY_STEPS:
            if run.refresh():
                now = time.monotonic()
                for step in run.steps().tolist():
                    seen.setdefault(step, now)
            time.sleep(0.005)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(LATENCY_STEPS + 1):
        time.sleep(0.37)
        written[training.step()] = time.monotonic()
    reader.join()
    used = (sum(psutil.Process(sender.pid).cpu_times()[:2]) - before) / (time.monotonic() - begun)
    training.end()
    sender.wait(60)
    delays = sorted(seen[step] - at for step, at in written.items() if step in seen and seen[step] >= at)
    return {
        "flush_s": flush_s,
        "interval_s": interval_s,
        "p50_s": round(delays[len(delays) // 2], 2),
        "p95_s": round(delays[int(len(delays) * 0.95)], 2),
        "sender_core_percent": round(100 * used, 2),
    }


def main() -> None:
    facts = machine("torch", "obstore")
    with tempfile.TemporaryDirectory() as folder, s3_server() as options:
        os.environ["TDBG_SPOOL"] = str(Path(folder) / "spool")
        os.environ["TDBG_MIRROR"] = str(Path(folder) / "mirror")
        live = [latency(options, flush_s, flush_s) for flush_s in (2.0, 0.5)]
        cost = training_cost(options, Path(folder))
    result = {
        "machine": facts,
        "training": cost,
        "latency": live,
    }
    print(publish(result, RESULTS / "remote", _table))


def _table(result) -> str:
    cost = result["training"]
    base = cost["folder"]
    lines = [
        "# Object stores",
        "",
        described(result["machine"]),
        loads(result),
        "S3 server: moto on loopback, which shares the machine.",
        "",
        f"Training of 8 x Linear(256), every step saved, {STEPS} steps,",
        f"median of {REPEATS} interleaved runs.",
        "CPU time of the training process; the sender is another process.",
        "",
        "| store | thread, ms a step | process, ms a step | to the folder | attach, s | sender, CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for name, label in (("folder", "folder"), ("bucket", "`s3://`"), ("outage", "`s3://`, nobody answers")):
        one = cost[name]
        ratio = one["thread_ms"] / base["thread_ms"]
        lines.append(
            f"| {label} | {one['thread_ms']:.2f} | {one['process_ms']:.2f} | {ratio:.3f} |"
            f" {one['attach_s']:.2f} | {one['sender_s']:.2f} |"
        )
    lines += [
        "",
        "From the write of a step until a reader that asks all the time has it:",
        "",
        "| flush interval, s | reader's interval, s | median, s | 95%, s | sender, % of a core |",
        "|---|---|---|---|---|",
    ]
    for one in result["latency"]:
        lines.append(
            f"| {one['flush_s']} | {one['interval_s']} | {one['p50_s']} | {one['p95_s']} |"
            f" {one['sender_core_percent']} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
