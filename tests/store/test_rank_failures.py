"""What the processes of a distributed training say about how they failed."""

from __future__ import annotations

import pytest

from tdbg_lab.capture.opening import Place, RunFacts, open_handle
from tdbg_lab.config import CaptureConfig
from tdbg_lab.run import list_runs, open_run
from tdbg_lab.store import RankWriter, create_run


@pytest.fixture
def folder(tmp_path):
    return create_run(tmp_path / "run", world_size=2)


def test_rank_that_failed_first_names_the_cause_of_all(folder):
    with pytest.raises(RuntimeError, match="out of luck"), second_rank(folder.path):
        raise RuntimeError("out of luck")
    folder.set_status("failed", "RuntimeError: connection closed by peer")
    run = open_run(folder.path)
    assert (run.status, run.info.error) == ("failed", "rank 1: RuntimeError: out of luck")
    assert list_runs(folder.path.parent)[0].info.error == run.info.error


def test_chief_that_failed_first_keeps_its_word(folder):
    folder.set_status("failed", "ValueError: mine")
    RankWriter(folder.path, 1).write_failure("RuntimeError: connection closed by peer")
    assert open_run(folder.path).info.error == "ValueError: mine"


@pytest.mark.parametrize(("said", "shown"), [("finished", "failed"), ("stopped", "stopped")])
def test_training_with_a_failed_rank_has_not_finished(folder, said, shown):
    RankWriter(folder.path, 1).write_failure("RuntimeError: out of memory")
    folder.set_status(said)
    assert open_run(folder.path).status == shown


def test_run_that_goes_on_forgets_and_rubbish_is_left_out(folder):
    RankWriter(folder.path, 1).write_failure("RuntimeError: first attempt")
    RankWriter(folder.path, 1)
    (folder.path / "rank-00000").mkdir()
    (folder.path / "rank-00000" / "failed.json").write_text('{"error": 3, "time_ns": "yesterday"}')
    folder.set_status("finished")
    assert (open_run(folder.path).status, open_run(folder.path).info.error) == ("finished", None)


def second_rank(path):
    """A handle as the second of two processes has it."""
    settings = CaptureConfig.build(None)
    return open_handle(path, settings, RunFacts(), place=Place(1, 2), phases=False)[0]
