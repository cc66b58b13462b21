"""Names that no file can have, wherever a place is given."""

from __future__ import annotations

import pytest

import tdbg_lab as tdbg
from tdbg_lab.config import load_config
from tdbg_lab.errors import TdbgError

PLACES = ("a" * 300, "runs\0one")


@pytest.mark.parametrize("place", PLACES, ids=["too long", "NUL"])
@pytest.mark.parametrize(
    "use",
    [
        tdbg.open_run,
        tdbg.run_rules,
        tdbg.import_run,
        load_config,
        lambda place: tdbg.export(place, to="csv"),
        tdbg.report,
    ],
)
def test_a_place_that_cannot_be_is_said_in_one_sentence(use, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TdbgError) as error:
        use(place)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("place", PLACES, ids=["too long", "NUL"])
def test_there_are_no_runs_at_a_place_that_cannot_be(place):
    assert tdbg.list_runs(place) == []
