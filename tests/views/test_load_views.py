"""Views of processor and GPUs: utilisation, balance, bottlenecks; several machines."""

from __future__ import annotations

import pytest

from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.store.machines import MachineFacts, write_machine
from tdbg_lab.views import call_view

HALF_S = 500_000_000


def sampled(path, loads, *, hosts=("one",), gpus=2, problem="", iowait=5.0):
    """A run sampled each half second: `loads` gives the load of a core and of the GPUs, percent."""
    folder = create_run(path)
    for rank, host in enumerate(hosts):
        writer = SystemWriter(folder.path, rank)
        write_machine(writer.path, MachineFacts(host=host, problem=problem))
        for tick, (core, *gpu) in enumerate(loads):
            metrics = ["cpu", "cpu", "cpu", "iowait", *["gpu"] * gpus, *["gpu_memory"] * gpus]
            devices = ["cpu", "cpu0", "cpu1", "cpu", *(f"gpu{n}" for n in range(gpus))]
            devices += [f"gpu{n}" for n in range(gpus)]
            values = [core / 2, core, 0.0, iowait, *gpu[:gpus], *[40.0] * gpus]
            writer.append(folder.info.created_ns + tick * HALF_S + rank, metrics, devices, values)
        writer.close()
    return open_run(folder.path)


def told(run, view, **params):
    figure = call_view(run, view, params)
    return figure, figure.layout.meta["tdbg"]["caption"]


def test_utilisation_has_a_box_for_each_device_and_says_what_fluctuates(tmp_path):
    run = sampled(tmp_path / "run", [(20, 0, 90), (20, 100, 90)] * 50)
    figure, said = told(run, "utilisation")
    assert [box.name for box in figure.data] == ["CPU", "gpu0", "gpu1", "gpu0 memory", "gpu1 memory"]
    boxes = {box.name: box for box in figure.data}
    assert (boxes["gpu0"].lowerfence[0], boxes["gpu0"].upperfence[0]) == (0, 100)
    assert boxes["gpu1"].median[0] == 90
    assert "gpu0: at most 100%, p95 100%, p5 0%, fluctuating." in said
    assert "gpu1: at most 90%, p95 90%, p5 90%." in said


def test_balance_says_how_far_gpus_are_apart(tmp_path):
    uneven = sampled(tmp_path / "uneven", [(20, 10, 90)] * 100)
    figure, said = told(uneven, "utilisation", show="balance")
    most = {trace.name: trace.x[list(trace.y).index(100.0)] for trace in figure.data}
    assert most == {"gpu0": 11, "gpu1": 91}
    assert "a distance of 0.83 of at most 0.83: the work is not spread evenly." in said
    even = sampled(tmp_path / "even", [(20, 80, 80)] * 100)
    assert "a distance of 0.00 of at most 0.83." in told(even, "utilisation", show="balance")[1]


def test_bottlenecks_are_shares_of_the_time_and_say_in_which_phase(tmp_path):
    run = sampled(tmp_path / "run", [(99, 5, 5)] * 60 + [(30, 5, 5)] * 20 + [(30, 95, 95)] * 20)
    writer = RankWriter(run.path)
    begin = run.info.created_ns
    starts = [begin - 1, begin + 15 * 10**9]
    writer.append_spans(["data"] * 2, ["data"] * 2, starts, [30 * HALF_S] * 2, [0, 1])
    writer.close()
    run.refresh()
    figure, said = told(run, "bottlenecks")
    assert list(figure.data[0]["values"]) == pytest.approx([0.2, 0.2, 0.6])
    assert "A GPU is below 10% in 80.0% of the time; in 60.0% of it a core is at its limit" in said
    assert said.endswith("in which phases: data 100.0%.")
    assert "the disks are waited for." in told(run, "bottlenecks", show="io")[1]
    waiting = sampled(tmp_path / "waiting", [(5, 5, 5)] * 50, iowait=60.0)
    assert "in 100.0% of it the disks are waited for" in told(waiting, "bottlenecks", show="io")[1]


@pytest.mark.parametrize("view", ["utilisation", "cores", "timeline"])
def test_machine_without_gpu_says_why(tmp_path, view):
    problem = "No NVIDIA driver was found: no GPU is read."
    run = sampled(tmp_path / "run", [(20,)] * 20, gpus=0, problem=problem)
    assert problem in told(run, view, window_s=1000)[1]
    assert problem in told(run, "bottlenecks")[1]
    assert problem in told(run, "utilisation", show="balance")[1]


def test_ranks_of_one_host_are_one_machine_and_hosts_are_told_apart(tmp_path):
    run = sampled(tmp_path / "run", [(20, 50, 60)] * 20, hosts=("a", "a", "b"))
    assert [row for row in told(run, "cores")[0].data[0].y if "gpu0" in row] == ["gpu0 of a", "gpu0 of b"]
    assert [box.name for box in told(run, "utilisation")[0].data][:2] == ["CPU of a", "CPU of b"]
    lines = [trace.name for trace in told(run, "timeline", window_s=1000)[0].data if trace.name]
    assert [name for name in lines if name.startswith("CPU")] == ["CPU of a", "CPU of b"]
    alone = sampled(tmp_path / "alone", [(20, 50, 60)] * 20, hosts=("a", "a"))
    assert list(told(alone, "cores")[0].data[0].y) == ["gpu0", "gpu1", "cpu0", "cpu1"]
    assert [box.name for box in told(alone, "utilisation")[0].data][:2] == ["CPU", "gpu0"]
