from __future__ import annotations

import asyncio
import json
import shutil

import pytest

from tdbg_lab.testing import fake_run
from tdbg_lab.testing.fake import FakeTraining


@pytest.fixture
def tdbg_view(tdbg_fetch, run_id):
    """Fetch a view of the run ``first``."""

    async def fetch(view, name="first", **params):
        return await tdbg_fetch(
            "runs",
            await run_id(name),
            "views",
            view,
            method="POST",
            body={"params": params},
            request_timeout=60,
        )

    return fetch


async def test_views_are_listed_with_their_parameters(tdbg_fetch):
    code, answer = await tdbg_fetch("views")
    assert code == 200
    views = {view["name"]: view for view in answer["views"]}
    assert {"scalars", "histogram", "overview", "latent", "timeline", "rules"} <= set(views)
    assert views["latent"]["heavy"] is True
    assert all(param["kind"] for view in views.values() for param in view["params"])


async def test_view_of_two_runs_follows_both(tdbg_view, run_id, root):
    fake_run(root / "runs" / "second", name="second", steps=10, layers=1)
    other = await run_id("second")
    code, answer = await tdbg_view("compare", other=other)
    assert code == 200, answer
    assert [trace["name"] for trace in answer["figure"]["data"]] == ["first", "second"]
    assert "median of" in answer["figure"]["layout"]["meta"]["tdbg"]["caption"]
    code, answer = await tdbg_view("compare", other=await run_id())
    assert code == 200
    assert "same run on both sides" in answer["figure"]["layout"]["meta"]["tdbg"]["caption"]


async def test_kept_picture_of_two_runs_is_drawn_anew_when_the_other_moves_on(tdbg_view, run_id, root):
    training = FakeTraining(root / "runs" / "live", name="live", layers=1)
    training.step()
    params = {"other": await run_id("live"), "show": "losses"}

    async def last_step():
        _, answer = await tdbg_view("compare", **params)
        return answer["figure"]["layout"]["meta"]["tdbg"]["caption"].split("at step ")[2].split(" ")[0]

    before = await last_step()
    for _ in range(5):
        training.step()
    async with asyncio.timeout(30):
        while True:
            if await last_step() != before:
                break
            await asyncio.sleep(0.1)
    training.end()


async def test_view_of_several_runs_is_drawn_without_those_that_are_gone(tdbg_view, run_id, root):
    for name in ("second", "third"):
        fake_run(root / "runs" / name, name=name, steps=10, layers=1)
    others = [await run_id("second"), "0" * 16, await run_id("third")]
    code, answer = await tdbg_view("runs", others=others)
    assert code == 200, answer
    names = [trace["name"].partition(" ")[0] for trace in answer["figure"]["data"]]
    assert names == ["first", "second", "third"]


@pytest.mark.parametrize("others", ["0" * 16, ["../../etc"], [7], ["0" * 16] * 32])
async def test_wrong_list_of_other_runs_is_said(tdbg_view, others):
    status, answer = await tdbg_view("runs", others=others)
    assert status == 400
    assert "Parameter 'others' must be" in answer["message"]


@pytest.mark.parametrize(
    ("other", "code", "words"),
    [
        ("0" * 16, 404, "list the runs again"),
        ("../../etc", 400, "must be the id of a run"),
        ("runs/first", 400, "must be the id of a run"),
        (7, 400, "must be the id of a run"),
    ],
)
async def test_other_run_is_one_under_the_roots(tdbg_view, other, code, words):
    status, answer = await tdbg_view("compare", other=other)
    assert status == code
    assert words in answer["message"]


@pytest.mark.parametrize(
    "view",
    [
        "scalars",
        "histogram",
        "slices",
        "statistics",
        "overview",
        "distribution",
        "latent",
        "timeline",
        "rules",
    ],
)
async def test_every_view_is_drawn(tdbg_view, view):
    code, answer = await tdbg_view(view)
    assert code == 200, answer
    assert answer["figure"]["layout"]["meta"]["tdbg"]["view"] == view
    assert answer["pending"] is None
    assert answer["version"] >= 0
    assert answer["ms"] >= 0


async def test_every_view_of_an_empty_run_is_drawn(tdbg_view, tdbg_fetch, root):
    training = FakeTraining(root / "empty", name="empty")
    _, answer = await tdbg_fetch("views")
    names = [view["name"] for view in answer["views"]]
    for name in (each for each in names if not each.startswith("test_")):  # those that other tests add
        code, drawn = await tdbg_view(name, "empty")
        assert code == 200, (name, drawn)
    training.end()


async def test_unknown_view_and_bad_parameters_are_refused(tdbg_view):
    code, answer = await tdbg_view("nonsense")
    assert (code, answer["reason"]) == (404, "NotFoundError")
    code, answer = await tdbg_view("histogram", tensor=3)
    assert (code, answer["reason"]) == (400, "ConfigError")
    code, answer = await tdbg_view("histogram", colour="red")
    assert (code, answer["reason"]) == (400, "ConfigError")


async def test_same_figure_is_drawn_once(tdbg_view, jp_serverapp, monkeypatch):
    from tdbg_lab.server import figures

    drawn = []
    draw = figures._draw
    monkeypatch.setattr(figures, "_draw", lambda *args: (drawn.append(args), draw(*args))[1])
    await asyncio.gather(*[tdbg_view("overview") for _ in range(5)])
    await tdbg_view("overview")
    assert len(drawn) == 1


async def test_cache_is_bounded(tdbg_view, jp_serverapp):
    figures = jp_serverapp.web_app.settings["tdbg_services"].figures
    figures._cache_bytes = 20_000
    for step in range(20):
        await tdbg_view("slices", step=step)
    assert 0 <= figures._cached_bytes <= 20_000
    assert figures._cached_bytes == sum(len(drawn.figure) for _, drawn in figures._cache.values())


async def test_figures_of_an_older_version_are_not_kept(tdbg_view, jp_serverapp, root):
    training = FakeTraining(root / "live", name="live", layers=1)
    figures = jp_serverapp.web_app.settings["tdbg_services"].figures
    version = 0
    for step in range(4):
        training.step()
        for _ in range(200):
            _, answer = await tdbg_view("scalars", "live")
            if answer["version"] > version:
                break
            await asyncio.sleep(0.05)
        assert answer["version"] > version, "the step is not told"
        _, answer = await tdbg_view("slices", "live", step=step)
        version = answer["version"]  # of a step that is read in two parts, later than the other figure's
    assert 1 <= len(figures._cache) <= 2
    assert figures._cached_bytes == sum(len(drawn.figure) for _, drawn in figures._cache.values())
    training.end()


@pytest.mark.parametrize(("view", "params"), [("scalars", {}), ("latent", {"method": "tsne"})])
async def test_figures_of_a_run_that_was_there_before_are_not_kept(
    tdbg_view, run_path, jp_serverapp, view, params
):
    async with asyncio.timeout(60):
        while (before := (await tdbg_view(view, **params))[1])["pending"]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    tails = jp_serverapp.web_app.settings["tdbg_services"].tails
    shutil.rmtree(run_path)
    async with asyncio.timeout(30):
        while len(tails):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    fake_run(run_path, steps=3, layers=2)
    _, after = await tdbg_view(view, **params)
    assert after["figure"]["data"] != before["figure"]["data"]
    assert after["version"] > before["version"]
    assert (after["pending"] is None) == (view == "scalars"), "nothing was prepared of the new one"


async def test_heavy_view_answers_at_once_and_then_completes(tdbg_view, jp_ws_fetch):
    socket = await jp_ws_fetch("tdbg", "stream")
    code, answer = await tdbg_view("latent", method="tsne", step=0)
    assert code == 200
    assert answer["figure"]["data"]
    assert answer["pending"]["job"]
    _, again = await tdbg_view("latent", method="tsne", step=0)
    assert again["pending"]["job"] == answer["pending"]["job"], "one job for one picture"
    states = []
    while not states or states[-1]["state"] not in {"done", "failed", "cancelled"}:
        message = json.loads(await asyncio.wait_for(socket.read_message(), 60))
        if message["type"] == "job":
            states.append(message)
    assert states[-1]["state"] == "done", states[-1]
    shares = [state["progress"] for state in states]
    assert shares == sorted(shares)
    _, complete = await tdbg_view("latent", method="tsne", step=0)
    assert complete["pending"] is None
    assert "t-SNE" in json.dumps(complete["figure"]["layout"]["meta"])
    socket.close()


async def test_job_can_be_cancelled(tdbg_view, tdbg_fetch, jp_serverapp):
    _, answer = await tdbg_view("latent", method="tsne")
    job = answer["pending"]["job"]
    assert (await tdbg_fetch("jobs", job, method="DELETE"))[0] == 204
    code, gone = await tdbg_fetch("jobs", job, method="DELETE")
    assert (code, gone["reason"]) == (404, "NotFoundError")
    _, after = await tdbg_view("latent", method="tsne")
    assert after["pending"] is None, "it does not start again by itself"
    assert jp_serverapp.web_app.settings["tdbg_services"].jobs._jobs == {}
