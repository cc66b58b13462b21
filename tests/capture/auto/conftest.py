"""A watch that ends with the test, and small trainings for it to find."""

from __future__ import annotations

import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.capture import open_handles
from tdbg_lab.capture.auto import AutoWatch


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Watch while a function runs; gives the runs."""
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    started = []

    def watched(program, *args, **settings):
        known = {"store": "runs/auto", "save_every": 1, "profiler": False, "strict": True}
        watch = AutoWatch({**known, **settings})
        started.append(watch)
        watch.start()
        error = None
        try:
            program(*args)
        except BaseException as raised:
            error = raised
            raise
        finally:
            watch.stop(error)
        return [tdbg.open_run(path) for path in watch.run_paths]

    yield watched
    for watch in started:
        watch.stop()
    for handle in open_handles():
        handle.detach()
