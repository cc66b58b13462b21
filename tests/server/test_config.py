from __future__ import annotations

import pytest

from tdbg_lab.testing import fake_run


@pytest.fixture
def tdbg_config(tmp_path):
    for name in ("one", "two"):
        fake_run(tmp_path / name / "run", steps=2, name=name)
    fake_run(tmp_path / "one" / "a" / "b" / "run", steps=2, name="deep")
    return {"run_roots": [str(tmp_path / "one"), str(tmp_path / "two")], "scan_depth": 2}


async def test_configured_roots_are_shown_and_nothing_else(tdbg_fetch, root):
    fake_run(root / "run", steps=2, name="under the server's root")
    _, answer = await tdbg_fetch("runs")
    assert {(run["root"], run["path"], run["name"]) for run in answer["runs"]} == {
        ("one", "run", "one"),
        ("two", "run", "two"),
    }
    assert (await tdbg_fetch("status"))[1]["roots"] == ["one", "two"]


async def test_error_is_one_log_line(tdbg_fetch, caplog):
    caplog.clear()
    await tdbg_fetch("runs", "0123456789abcdef")
    lines = [record for record in caplog.records if record.levelname in {"WARNING", "ERROR"}]
    assert len(lines) == 1
    assert "404 GET" in lines[0].getMessage()


async def test_success_is_quiet(tdbg_fetch, caplog):
    caplog.clear()
    await tdbg_fetch("runs")
    assert [record for record in caplog.records if record.levelno > 10] == []
