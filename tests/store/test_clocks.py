"""Clocks of several machines: what is apart by them is read as if they agreed."""

from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, SystemWriter, create_run
from tdbg_lab.store.machines import MachineFacts, write_machine
from tdbg_lab.views import call_view

MS = 1_000_000
STEP = 100 * MS


def trained(path, ahead_s, *, hosts=("a", "a", "b", "b"), varies_ms=1.0, steps=40):
    """Ranks that leave each backward pass together; the clock of machine b is ahead."""
    rng = np.random.default_rng(0)
    folder = create_run(path, world_size=len(hosts))
    for rank, host in enumerate(hosts):
        shift = int(ahead_s * 1e9) if host == "b" else 0
        zero = folder.info.created_ns + 1_000 * MS + shift
        writer, system = RankWriter(folder.path, rank), SystemWriter(folder.path, rank)
        write_machine(writer.path, MachineFacts(host=host))
        for step in range(steps):
            end = zero + (step + 1) * STEP + int(rng.normal(0, varies_ms) * MS)
            late = 20 * MS * rank
            starts, lengths = [end - 90 * MS, end - 80 * MS + late], [10 * MS + late, 80 * MS - late]
            writer.append_spans(["forward", "backward"], ["forward", "backward"], starts, lengths, [step] * 2)
            system.append(end, ["cpu"], ["cpu"], [50.0])
        writer.close()
        system.close()
    folder.set_status("finished")
    return open_run(folder.path)


def ends(run, rank):
    spans = run.spans(phases=["backward"])
    spans = spans[spans["rank"] == rank]
    return (spans["start_ns"] + spans["duration_ns"]).to_numpy()


@pytest.mark.parametrize("ahead_s", [0.5, 30.0, -7200.0])
def test_machines_are_shown_by_one_clock(tmp_path, ahead_s):
    run = trained(tmp_path / "run", ahead_s)
    assert run.clock_offsets() == {"b": pytest.approx(ahead_s, abs=0.003)}
    for rank in (1, 2, 3):
        assert np.abs(ends(run, rank) - ends(run, 0)).max() < 10 * MS
    series = {one.rank: one for one in run.sample_series(["cpu"])}
    assert np.abs(series[3].time_ns - series[0].time_ns).max() < 10 * MS
    assert run.last_sample_ns < run.info.created_ns + 6e9
    figure = call_view(run, "timeline", {"tracks": "machines"})
    assert figure.layout.xaxis.range[1] < 6
    word = "ahead" if ahead_s > 0 else "behind"
    assert "that of b is" in figure.layout.meta["tdbg"]["caption"]
    assert word in figure.layout.meta["tdbg"]["caption"]


def test_a_part_of_the_time_is_by_one_clock_too(tmp_path):
    run = trained(tmp_path / "run", 30.0)
    begin = run.info.created_ns + 2_050 * MS
    spans = run.spans(start_ns=begin, end_ns=begin + 5 * STEP)
    assert spans.groupby("rank").size().tolist() == [10] * 4
    series = run.sample_series(["cpu"], start_ns=begin, end_ns=begin + 5 * STEP)
    assert {one.rank: len(one.value) for one in series} == dict.fromkeys(range(4), 5)


@pytest.mark.parametrize(
    ("ahead_s", "varies_ms", "hosts"),
    [(0.005, 1.0, ("a", "b")), (0.5, 200.0, ("a", "b")), (30.0, 1.0, ("b", "b"))],
    ids=["by a time server", "not in step", "one machine"],
)
def test_clocks_are_left_alone(tmp_path, ahead_s, varies_ms, hosts):
    run = trained(tmp_path / "run", ahead_s, varies_ms=varies_ms, hosts=hosts)
    assert run.clock_offsets() == {}
    assert "Clocks" not in call_view(run, "timeline").layout.meta["tdbg"]["caption"]


def test_a_few_steps_tell_nothing(tmp_path):
    assert trained(tmp_path / "run", 30.0, steps=7).clock_offsets() == {}
