"""What wakes a rule runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from tdbg_lab.rules.waiting import _is_news


@pytest.mark.parametrize("root", ["/runs/first", "/work/findings/first", "/work/system-test/first"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rank-00000/stats-000001.arrows", True),
        ("run.json", True),
        ("", True),
        ("rank-00000/system-000001.arrows", False),
        ("findings/status.json", False),
        ("findings/.status.json.0123abcd.tmp", False),
    ],
)
def test_runner_is_woken_by_what_training_writes_wherever_the_run_lies(root, name, expected):
    path = Path(root)
    assert _is_news(path, str(path / name)) is expected
