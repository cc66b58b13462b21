from __future__ import annotations

import json
import os
import threading

import pytest

from tdbg_lab.run import list_runs
from tdbg_lab.server.jsonable import encode
from tdbg_lab.server.routes import base
from tdbg_lab.store import create_run, layout

N_RUNS = 2000
FINISHED_S = 1.7e9


@pytest.fixture
def many(root, run_path):
    """Two thousand finished runs."""
    template = json.loads((run_path / "run.json").read_text())
    for number in range(N_RUNS):
        folder = root / "many" / f"run-{number}"
        (folder / "rank-00000").mkdir(parents=True)
        value = {**template, "id": f"{number:032x}", "name": f"run-{number}", "created_ns": number}
        written = folder / "written"
        written.write_text(json.dumps(value))
        os.utime(written, (FINISHED_S, FINISHED_S))  # what changed just now is read again
        written.rename(folder / "run.json")  # old from the first moment: the server may look at any time


async def test_thousands_of_runs_are_listed_and_read_once(tdbg_fetch, many, monkeypatch):
    _, answer = await tdbg_fetch("runs")
    assert len(answer["runs"]) == N_RUNS + 1
    read = []
    monkeypatch.setattr(layout, "read_bytes", lambda path, _limit: read.append(path))
    _, answer = await tdbg_fetch("runs")
    assert len(answer["runs"]) == N_RUNS + 1
    again = [path for path in read if "many" in path.parts]
    assert len(again) <= 1, "runs that did not change are known; one may be read just now by whoever watches"


@pytest.mark.parametrize(
    "parts",
    [(), ("tensors",), ("steps",), ("rules",), ("settings",), ("profile",)],
    ids=lambda parts: "/".join(parts) or "run",
)
async def test_answer_is_made_where_it_does_not_hold_up_the_server(tdbg_fetch, run_id, monkeypatch, parts):
    """A list of 10,000 runs, or the tensors of a large model, take most of a second."""
    run, threads = await run_id(), []

    def noticed(value):
        threads.append(threading.current_thread())
        return encode(value)

    monkeypatch.setattr(base, "encode", noticed)
    for asked in (("runs",), ("runs", run, *parts)):
        status, _ = await tdbg_fetch(*asked)
        assert status == 200
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_bounds_are_told(many, root):
    from tdbg_lab.server.roots import make_roots
    from tdbg_lab.server.scan import scan

    (place,) = make_roots([], str(root))
    found = scan(place, depth=5, max_runs=100)
    assert (len(found.runs), found.truncated) == (100, True)
    assert "many/run-999" in found.runs, "names mostly grow with time"
    assert scan(place, depth=1, max_runs=10_000).runs == ()


async def test_lab_lists_the_runs_that_the_command_line_lists(tdbg_fetch, root):
    """Also those in deep folders, such as ``project/user/group/date/first``."""
    for path in ("a/b/c/d/e", "a/b/c/d/f/g"):
        create_run(root / path)
    _, answer = await tdbg_fetch("runs")
    listed = {summary.path.relative_to(root).as_posix() for summary in list_runs(root)}
    assert {run["path"] for run in answer["runs"]} == listed
    assert "a/b/c/d/e" in listed
    assert "a/b/c/d/f/g" not in listed
