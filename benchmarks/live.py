"""How long from a hook's write to the message on the socket, at 20 steps a second.

A training process (torch, ``attach``, every step saved) writes; a real Jupyter server follows; this
process is the client. Latency of a step = arrival of the first message whose ``last_step`` reaches it,
minus the ``time_ns`` that the training process wrote with it. Both processes run on one machine and
read one clock. Twice: a client that only listens, and one that fetches two figures after every message,
as an open panel does.

    python benchmarks/live.py [--seconds 20] [--rate 20] [--soak-minutes 0]

With ``--soak-minutes`` it follows a third run for that long, panel open, and tells whether the server's
memory grows: resident memory after a quarter of the time and at the end.

Writes ``benchmarks/results/live.json`` and ``live.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from machine import described, loads, machine, publish
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

from tdbg_lab.run import open_run

RESULTS = Path(__file__).parent / "results"
TARGET_P95_MS = 100.0
FIGURES = (("histogram", {"tensor": "activation/1"}), ("scalars", {}))

TRAINING = """
import sys, time
import torch
import tdbg_lab as tdbg
torch.set_num_threads(1)
path, steps, rate, ahead = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
layers = [torch.nn.Linear(64, 256), torch.nn.ReLU()]
for _ in range(6):
    layers += [torch.nn.Linear(256, 256), torch.nn.ReLU()]
model = torch.nn.Sequential(*layers, torch.nn.Linear(256, 10))
loss = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
handle = tdbg.attach(model, optimizer=optimizer, loss=loss, store=path, save_every=1, rules="none")
print("ready", flush=True)
sys.stdin.readline()
for step in range(steps):
    if step <= ahead:  # these are written as fast as can be
        start = time.monotonic()
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()
    if step >= ahead:
        time.sleep(max(0.0, start + (step + 1 - ahead) / rate - time.monotonic()))
handle.detach()
"""


def start_server(root: Path, port: int, token: str) -> subprocess.Popen:
    options = {
        "ServerApp.jpserver_extensions": "{'tdbg_lab': True, 'jupyterlab': False}",
        "ServerApp.allow_root": "True",
        "ServerApp.open_browser": "False",
        "ServerApp.port": port,
        "ServerApp.port_retries": "0",
        "ServerApp.root_dir": root,
        "IdentityProvider.token": token,
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class Client:
    def __init__(self, port: int, token: str) -> None:
        self.base = f"127.0.0.1:{port}/tdbg"
        self.headers = {"Authorization": f"token {token}"}
        self.http = AsyncHTTPClient()

    async def get(self, path, body=None):
        request = HTTPRequest(
            f"http://{self.base}/{path}",
            method="GET" if body is None else "POST",
            headers=self.headers,
            body=None if body is None else json.dumps(body),
        )
        return json.loads((await self.http.fetch(request)).body)

    async def ready(self):
        for _ in range(300):
            try:
                return await self.get("status")
            except OSError:
                await asyncio.sleep(0.1)
        raise SystemExit("The server did not start.")

    async def run_id(self, name):
        for _ in range(100):
            for run in (await self.get("runs"))["runs"]:
                if run["name"] == name:
                    return run["id"]
            await asyncio.sleep(0.1)
        raise SystemExit("The run did not appear.")


async def fetch_figures(client: Client, run_id: str, wanted: asyncio.Event, times: list[float]) -> None:
    """As a panel: after a message, one request a figure; messages that come meanwhile are one."""
    while True:
        await wanted.wait()
        wanted.clear()
        for view, params in FIGURES:
            started = time.monotonic()
            await client.get(f"runs/{run_id}/views/{view}", {"params": params})
            times.append((time.monotonic() - started) * 1e3)


async def scene(root: Path, client: Client, server: psutil.Process, *, steps, rate, name, panel):
    training = subprocess.Popen(  # noqa: ASYNC220 - starts once, before anything is measured
        [sys.executable, "-c", TRAINING, str(root / name), str(steps), str(rate), "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert training.stdout.readline() == "ready\n"
    run_id = await client.run_id(name)
    stream = await websocket_connect(HTTPRequest(f"ws://{client.base}/stream", headers=client.headers))
    await stream.write_message(json.dumps({"type": "watch", "runs": [run_id]}))
    wanted, figure_ms, arrivals = asyncio.Event(), [], []
    panel_task = asyncio.ensure_future(fetch_figures(client, run_id, wanted, figure_ms)) if panel else None
    training.stdin.write("\n")
    training.stdin.flush()
    cpu_before, started = sum(server.cpu_times()[:2]), time.monotonic()
    memory = []
    while True:
        message = json.loads(await asyncio.wait_for(stream.read_message(), 30))
        if message["type"] != "run":
            continue
        arrivals.append((message["last_step"], time.time_ns()))
        memory.append(server.memory_info().rss / 2**20)
        wanted.set()
        if message["last_step"] >= steps - 1 or message["summary"]["status"] != "running":
            break
    cpu_share = (sum(server.cpu_times()[:2]) - cpu_before) / (time.monotonic() - started)
    if panel_task is not None:
        panel_task.cancel()
    stream.close()
    training.wait(timeout=60)
    result = summarize(root / name, arrivals, figure_ms, cpu_share)
    quarter, third = memory[len(memory) // 4 : len(memory) // 3] or memory, memory[-len(memory) // 10 :]
    return {**result, "rss_quarter_mb": float(np.median(quarter)), "rss_end_mb": float(np.median(third))}


def summarize(path: Path, arrivals, figure_ms, cpu_share) -> dict:
    steps, written_ns = open_run(path).step_times()
    seen_steps = np.array([step for step, _ in arrivals])
    seen_ns = np.array([at for _, at in arrivals])
    first = np.searchsorted(seen_steps, steps)  # the first message that reaches each step
    known = first < len(seen_steps)
    latency_ms = (seen_ns[first[known]] - written_ns[known]) / 1e6
    latency_ms = latency_ms[20:]  # while the run is opened and kernels are loaded
    return {
        "steps": len(steps),
        "tensors": len(open_run(path).tensors()),
        "steps_per_second": float((len(steps) - 1) / ((written_ns[-1] - written_ns[0]) / 1e9)),
        "messages": len(arrivals),
        "p50_ms": float(np.percentile(latency_ms, 50)),
        "p95_ms": float(np.percentile(latency_ms, 95)),
        "max_ms": float(latency_ms.max()),
        "server_cpu_share_of_a_core": cpu_share,
        "figures": len(figure_ms),
        "figure_p50_ms": float(np.percentile(figure_ms, 50)) if figure_ms else None,
        "figure_p95_ms": float(np.percentile(figure_ms, 95)) if figure_ms else None,
    }


async def measure(steps: int, rate: float, soak_minutes: float) -> dict:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(Path(folder), port, token)
        try:
            client = Client(port, token)
            await client.ready()
            await client.get("views")  # what a panel has loaded long before
            process = psutil.Process(server.pid)
            place = (Path(folder), client, process)
            result = {
                "listening": await scene(*place, name="a", panel=False, steps=steps, rate=rate),
                "panel": await scene(*place, name="b", panel=True, steps=steps, rate=rate),
            }
            if soak_minutes:
                soak = int(soak_minutes * 60 * rate)
                result["soak"] = await scene(*place, name="c", panel=True, steps=soak, rate=rate)
            return result
        finally:
            server.terminate()
            server.wait(timeout=20)


def report(result: dict) -> str:
    rows = [
        "| client | steps/s | tensors | p50 ms | p95 ms | max ms | messages | server cores | figure ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cases = {
        "listening": "only listens",
        "panel": "fetches two figures after each message",
        "soak": "same, long",
    }
    for name, words in cases.items():
        if name not in result:
            continue
        case = result[name]
        figures = "-" if not case["figures"] else f"{case['figure_p50_ms']:.0f} / {case['figure_p95_ms']:.0f}"
        rows.append(
            f"| {words} | {case['steps_per_second']:.1f} | {case['tensors']} | {case['p50_ms']:.0f} | "
            f"{case['p95_ms']:.0f} | {case['max_ms']:.0f} | {case['messages']} | "
            f"{case['server_cpu_share_of_a_core']:.2f} | {figures} |"
        )
    text = (
        "# From a hook's write to the socket's message\n\n"
        f"{described(result['machine'])} {loads(result)} Target: p95 <= {TARGET_P95_MS:.0f} ms.\n\n"
        + "\n".join(rows)
        + "\n"
    )
    if "soak" in result:
        soak = result["soak"]
        minutes = soak["steps"] / soak["steps_per_second"] / 60
        text += (
            f"\nResident memory of the server over {minutes:.0f} minutes and {soak['steps']} steps: "
            f"{soak['rss_quarter_mb']:.0f} MB after a quarter, {soak['rss_end_mb']:.0f} MB at the end.\n"
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--soak-minutes", type=float, default=0)
    options = parser.parse_args()
    facts = machine("tornado")
    steps = int(options.seconds * options.rate)
    result = {"machine": facts} | asyncio.run(measure(steps, options.rate, options.soak_minutes))
    print(publish(result, RESULTS / "live", report))


if __name__ == "__main__":
    main()
