from __future__ import annotations

import shutil

import pytest

from tdbg_lab.server import delete
from tdbg_lab.testing import fake_run


@pytest.fixture
def outside(tmp_path):
    """A run that no root holds."""
    return fake_run(tmp_path / "outside" / "secret", steps=3)


async def test_linked_run_is_not_listed(tdbg_fetch, root, outside):
    (root / "link").symlink_to(outside)
    (root / "folder").symlink_to(outside.parent)
    assert (await tdbg_fetch("runs"))[1]["runs"] == []


async def test_run_replaced_by_a_link_is_refused(tdbg_fetch, run_id, run_path, outside):
    run = await run_id()
    shutil.rmtree(run_path)
    run_path.symlink_to(outside)
    for parts in ((), ("tensors",), ("rules",)):
        code, answer = await tdbg_fetch("runs", run, *parts)
        assert (code, answer["reason"]) == (403, "AccessError")
        assert str(outside.parent) not in answer["message"]
    assert (await tdbg_fetch("runs", run, method="DELETE"))[0] == 403
    assert (outside / "run.json").exists()


async def test_folder_above_replaced_by_a_link_is_refused(tdbg_fetch, run_id, run_path, outside):
    run = await run_id()
    shutil.rmtree(run_path.parent)
    run_path.parent.symlink_to(outside.parent)
    (outside.parent / "first").mkdir()
    assert (await tdbg_fetch("runs", run))[0] == 403


async def test_linked_rank_is_refused(tdbg_fetch, run_id, run_path, outside):
    shutil.rmtree(run_path / "rank-00000")
    (run_path / "rank-00000").symlink_to(outside / "rank-00000")
    run = await run_id()
    assert (await tdbg_fetch("runs", run, "tensors"))[0] == 403
    assert (await tdbg_fetch("runs", run, method="DELETE"))[0] == 403
    assert list((outside / "rank-00000").iterdir())


async def test_linked_run_file_is_no_run(tdbg_fetch, root, outside):
    (root / "fake").mkdir()
    (root / "fake" / "run.json").symlink_to(outside / "run.json")
    assert (await tdbg_fetch("runs"))[1]["runs"] == []


async def test_links_inside_a_run_are_removed_not_followed(tdbg_fetch, run_id, run_path, outside):
    (run_path / "rank-00000" / "stats-000099.parquet").symlink_to(outside / "run.json")
    (run_path / "rank-00000" / "more").symlink_to(outside)
    assert (await tdbg_fetch("runs", await run_id(), method="DELETE"))[0] == 204
    assert (outside / "run.json").exists()


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("moment", ["require_no_way_out", "_open"])
async def test_link_that_appears_while_a_run_is_deleted_leads_nowhere(
    tdbg_fetch, run_id, run_path, outside, monkeypatch, moment, level
):
    """Between the last check and the first file that is removed: by somebody who shares the root."""
    run, checked = await run_id(), getattr(delete, moment)
    other = outside.rename(outside.with_name(run_path.name))
    place, target = [(run_path, other), (run_path.parent, other.parent)][level]

    def link_afterwards(found):
        answer = checked(found)
        place.rename(place.with_name("moved"))
        place.symlink_to(target)
        return answer

    monkeypatch.setattr(delete, moment, link_afterwards)
    await tdbg_fetch("runs", run, method="DELETE")
    assert (other / "run.json").exists()
    assert list((other / "rank-00000").iterdir())


async def test_hidden_and_package_folders_are_not_searched(tdbg_fetch, root):
    fake_run(root / ".hidden" / "run", steps=2)
    fake_run(root / "node_modules" / "run", steps=2)
    assert (await tdbg_fetch("runs"))[1]["runs"] == []


async def test_damaged_run_file_hides_the_run_only(tdbg_fetch, root, run_path):
    (root / "bad").mkdir()
    (root / "bad" / "run.json").write_text("{" * 10_000)
    (root / "other").mkdir()
    (root / "other" / "run.json").write_text('{"format": 99}')
    assert [run["name"] for run in (await tdbg_fetch("runs"))[1]["runs"]] == ["first"]
