from __future__ import annotations

import json

import pytest

from tdbg_lab.store import layout

N_RUNS = 2000


@pytest.fixture
def many(root, run_path):
    """Two thousand finished runs."""
    template = json.loads((run_path / "run.json").read_text())
    for number in range(N_RUNS):
        folder = root / "many" / f"run-{number}"
        (folder / "rank-00000").mkdir(parents=True)
        value = {**template, "id": f"{number:032x}", "name": f"run-{number}", "created_ns": number}
        (folder / "run.json").write_text(json.dumps(value))


async def test_thousands_of_runs_are_listed_and_read_once(tdbg_fetch, many, monkeypatch):
    _, answer = await tdbg_fetch("runs")
    assert len(answer["runs"]) == N_RUNS + 1
    read = []
    monkeypatch.setattr(layout, "read_bytes", lambda path, _limit: read.append(path))
    _, again = await tdbg_fetch("runs")
    assert len(again["runs"]) == N_RUNS + 1
    assert len(read) < N_RUNS / 100, "runs that did not change are known"


async def test_bounds_are_told(many, root):
    from tdbg_lab.server.roots import make_roots
    from tdbg_lab.server.scan import scan

    (place,) = make_roots([], str(root))
    found = scan(place, depth=5, max_runs=100)
    assert (len(found.runs), found.truncated) == (100, True)
    assert scan(place, depth=1, max_runs=10_000).runs == ()
