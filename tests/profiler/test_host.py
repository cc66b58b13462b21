from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from tdbg_lab.profiler.cgroup import Cgroup, own_container
from tdbg_lab.profiler.host import HostProbe
from tdbg_lab.profiler.probe import Rate
from tdbg_lab.profiler.process import ProcessProbe

if TYPE_CHECKING:
    from pathlib import Path


def cgroup(tmp_path: Path, **files: str) -> Cgroup:
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text)
    return Cgroup(tmp_path)


def test_host_probe_reads_every_documented_metric(tmp_path: Path) -> None:
    probe = HostProbe(cgroup(tmp_path))
    list(probe.read())
    metrics = {(r.metric, r.device): r.value for r in probe.read()}
    assert {"cpu", "memory", "memory_bytes", "net_recv", "net_sent"} <= {metric for metric, _ in metrics}
    assert ("cpu", f"cpu{(psutil.cpu_count() or 1) - 1}") in metrics
    assert 0 <= metrics["cpu", "cpu"] <= 100
    assert 0 < metrics["memory", "memory"] < 100
    machine = psutil.virtual_memory()
    assert metrics["memory_bytes", "memory"] == pytest.approx(machine.total - machine.available, rel=0.5)


def test_memory_percent_is_that_of_the_container_limit(tmp_path: Path) -> None:
    own = cgroup(
        tmp_path,
        memory_max="1048576\n",
        memory_current="524288\n",
        memory_stat="anon 1\ninactive_file 262144\n",
    )
    metrics = {r.metric: r.value for r in HostProbe(own).read() if r.device == "memory"}
    assert metrics == {"memory": 25.0, "memory_bytes": 262144.0}


def test_cpu_percent_is_that_of_the_container_share(tmp_path: Path, monkeypatch) -> None:
    own = cgroup(tmp_path, cpu_max="200000 100000\n", cpu_stat="usage_usec 1000000\n")
    assert own.cores == 2
    probe = HostProbe(own)
    clock = iter([10.0, 12.0])
    monkeypatch.setattr("tdbg_lab.profiler.probe.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(probe, "_rates", {})
    list(probe._read_cpu())
    (tmp_path / "cpu.stat").write_text("usage_usec 3000000\n")
    metrics = {r.device: r.value for r in probe._read_cpu()}
    assert metrics["cpu"] == pytest.approx(50.0)


@pytest.mark.parametrize("text", ["max\n", "", "garbage\n", "max 100000\n"])
def test_container_without_limit_uses_the_machine(tmp_path: Path, text: str) -> None:
    own = cgroup(tmp_path, memory_max=text, cpu_max=text)
    assert own.cores is None
    assert own.memory_limit_bytes is None


OLD_GROUPS = """12:cpu,cpuacct:/docker/7f
5:memory:/docker/7f
1:name=systemd:/docker/7f
"""
OLD_MEMORY = {"limit_in_bytes": 1048576, "usage_in_bytes": 524288}


def old_groups(root: Path, below: str, *, quota: int, limit: int) -> Path:
    """Directories as version 1 of control groups has them; gives the file that names our group."""
    memory, cpu = root / "memory" / below, root / "cpu,cpuacct" / below
    for folder in (memory, cpu):
        folder.mkdir(parents=True)
    (root / "cpu").symlink_to("cpu,cpuacct")
    (root / "cpuacct").symlink_to("cpu,cpuacct")
    for name, value in (OLD_MEMORY | {"limit_in_bytes": limit}).items():
        (memory / f"memory.{name}").write_text(f"{value}\n")
    (memory / "memory.stat").write_text("inactive_file 7\ntotal_inactive_file 262144\n")
    (cpu / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (cpu / "cpu.cfs_period_us").write_text("100000\n")
    (cpu / "cpuacct.usage").write_text("3500000000\n")
    (root / "membership").write_text(OLD_GROUPS)
    return root / "membership"


@pytest.mark.parametrize("below", ["docker/7f", ""], ids=["own path", "seen as root"])
def test_limits_of_old_control_groups_are_found(tmp_path: Path, below: str) -> None:
    own = own_container(tmp_path, old_groups(tmp_path, below, quota=150_000, limit=1_048_576))
    assert own.cores == 1.5
    assert own.cpu_seconds() == 3.5
    metrics = {r.metric: r.value for r in HostProbe(own).read() if r.device == "memory"}
    assert metrics["memory"] == 25.0
    assert metrics["memory_bytes"] == 262_144.0


def test_old_control_groups_without_limit_use_the_machine(tmp_path: Path) -> None:
    own = own_container(tmp_path, old_groups(tmp_path, "", quota=-1, limit=9223372036854771712))
    assert own.cores is None
    assert own.memory_limit_bytes is None


def test_container_of_version_2_is_found_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "app.slice").mkdir()
    (tmp_path / "app.slice" / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "membership").write_text("0::/app.slice\n")
    assert own_container(tmp_path, tmp_path / "membership").cores == 0.5


def test_machine_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    own = own_container(tmp_path, tmp_path / "none")
    assert (own.cores, own.memory_limit_bytes, own.cpu_seconds()) == (None, None, None)


def test_rate_needs_two_readings_and_survives_a_wrap() -> None:
    rate = Rate()
    assert rate.update(100, 1.0) is None
    assert rate.update(300, 2.0) == 200
    assert rate.update(0, 3.0) == 0
    assert rate.update(50, 3.0) is None


def test_process_probe_sees_a_busy_child_and_its_end() -> None:
    probe = ProcessProbe(psutil.Process(os.getpid()))
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nb = bytearray(80_000_000)\nprint(flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.readline()
    alone = psutil.Process().memory_info().rss
    both = {r.metric: r.value for r in probe.read()}["process_memory_bytes"]
    assert both > alone + 70_000_000
    told = {r.metric: r.value for r in probe.read()}
    assert told["workers"] >= 1
    assert 0 <= told["worker_cpu"] <= told["process_cpu"]
    child.communicate(b"\n")
    after = {r.metric: r.value for r in probe.read()}["process_memory_bytes"]
    assert after < both - 70_000_000


def test_process_probe_reads_nothing_of_a_process_that_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    probe = ProcessProbe(psutil.Process(child.pid))
    child.communicate(b"\n")
    assert list(probe.read()) == []
