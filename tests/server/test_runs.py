from __future__ import annotations

import asyncio
import json
import time

import pytest
from jupyter_server.auth.identity import User

from tdbg_lab import attach
from tdbg_lab.records import Finding, Kind, Mode, Severity, StatsRows, TensorKey
from tdbg_lab.stats.block import scalar_block
from tdbg_lab.store import FindingsWriter, RankWriter, control, create_run
from tdbg_lab.store.attempts import after_checkpoint
from tdbg_lab.testing import fake_run


async def test_status_names_version_and_roots(tdbg_fetch, root):
    code, answer = await tdbg_fetch("status")
    assert code == 200
    assert answer["roots"] == [root.name]
    assert isinstance(answer["gpu"], bool)


async def test_runs_are_listed_newest_first(tdbg_fetch, root):
    fake_run(root / "runs" / "old", steps=3)
    fake_run(root / "deep" / "er" / "runs" / "new", steps=3, status="running", close=False)
    code, answer = await tdbg_fetch("runs")
    assert code == 200
    assert [run["name"] for run in answer["runs"]] == ["new", "old"]
    new, old = answer["runs"]
    assert new["path"] == "deep/er/runs/new"
    assert (new["status"], old["status"]) == ("running", "finished")
    assert old["last_step"] == 2
    assert len(new["id"]) == 16


async def test_run_that_ended_before_its_first_step_has_none(tdbg_fetch, root):
    torch = pytest.importorskip("torch")
    attach(torch.nn.Linear(3, 2), store=root / "runs" / "none").detach()
    _, answer = await tdbg_fetch("runs")
    _, detail = await tdbg_fetch("runs", answer["runs"][0]["id"])
    assert detail["last_step"] == -1
    _, answer = await tdbg_fetch("runs")
    assert answer["runs"][0]["last_step"] == -1


async def test_run_that_goes_on_from_a_checkpoint_is_at_that_step(tdbg_fetch, root, run_path, run_id):
    first = await run_id()
    _, before = await tdbg_fetch("runs", first)
    create_run(run_path, if_exists="resume")
    writer = RankWriter(run_path, goes_on_at=after_checkpoint(10))
    row = StatsRows(10, Mode.TRAIN, 0, time.time_ns(), (TensorKey("loss", Kind.LOSS),), scalar_block([1.0]))
    writer.append(row)
    for _ in range(100):  # until the server, which has the run open, has seen it
        _, detail = await tdbg_fetch("runs", first)
        if detail["last_step"] != before["last_step"]:
            break
        await asyncio.sleep(0.1)
    for _ in range(100):  # until the server lets go of it
        _, listed = await tdbg_fetch("runs")
        if not listed["runs"][0]["open"] and listed["runs"][0]["last_step"] != before["last_step"]:
            break
        await asyncio.sleep(0.1)
    writer.close()
    (closed,) = listed["runs"]
    assert closed["open"] is False
    assert [before["last_step"], detail["last_step"], closed["last_step"]] == [29, 10, 10]


async def test_last_step_is_the_same_while_a_run_is_open_and_afterwards(tdbg_fetch, root, run_path, run_id):
    folder = create_run(root / "runs" / "evaluated")
    writer = RankWriter(folder.path)
    for step, mode in ((4, Mode.TRAIN), (5, Mode.EVAL)):
        row = (TensorKey("loss", Kind.LOSS),), scalar_block([1.0])
        writer.append(StatsRows(step, mode, 0, time.time_ns(), *row))
    writer.close()
    folder.set_status("finished", last_step=4)
    run = await run_id("evaluated")
    _, detail = await tdbg_fetch("runs", run)
    seen = set()
    for _ in range(100):  # until the server lets go of it
        _, listed = await tdbg_fetch("runs")
        (line,) = (one for one in listed["runs"] if one["id"] == run)
        seen.add(line["last_step"])
        if not line["open"]:
            break
        await asyncio.sleep(0.1)
    assert line["open"] is False
    assert {detail["last_step"]} == seen == {5}


async def test_list_is_empty_without_runs(tdbg_fetch):
    assert await tdbg_fetch("runs") == (200, {"runs": [], "truncated": False, "unread": []})


async def test_detail_tells_what_the_run_says(tdbg_fetch, run_id):
    code, detail = await tdbg_fetch("runs", await run_id())
    assert code == 200
    assert detail["hyperparameters"]["lr"] == 0.1
    assert detail["first_step"] == 0
    assert detail["last_step"] == 29
    assert detail["modes"] == ["train"]
    assert detail["ranks"] == [0]
    assert detail["findings"]["warning"] == 1
    assert detail["open"] is True
    assert 2 <= len(detail["loss"]) <= 64
    assert detail["cost"]["share"] == pytest.approx(detail["cost"]["capture_ms"] / detail["cost"]["step_ms"])
    assert detail["cost"]["save_every"] is None


async def test_detail_tells_a_distance_of_saved_steps_that_was_chosen(tdbg_fetch, root, run_id):
    folder = create_run(root / "runs" / "chosen")
    writer = RankWriter(folder.path)
    keys = TensorKey("tdbg/capture_ms", Kind.COST), TensorKey("tdbg/save_every", Kind.COST)
    for step, every in ((8, 64.0), (64, 32.0)):
        writer.append(StatsRows(step, Mode.TRAIN, 0, time.time_ns(), keys, scalar_block([0.5, every])))
    writer.close()
    folder.set_status("finished", last_step=64)
    _, detail = await tdbg_fetch("runs", await run_id("chosen"))
    cost = {"capture_ms": 0.5, "step_ms": None, "share": None, "bytes_written": None, "save_every": 32}
    assert detail["cost"] == cost


async def test_tensors_and_steps_are_listed(tdbg_fetch, run_id):
    run = await run_id()
    code, answer = await tdbg_fetch("runs", run, "tensors")
    assert code == 200
    names = {tensor["name"]: tensor for tensor in answer["tensors"]}
    assert names["activation/layer1"]["findings"] == 1
    assert names["activation/layer1"]["severity"] == "warning"
    assert names["layer1.weight"]["severity"] is None
    assert names["layer0.weight"]["shape"] == [16, 16]
    assert answer["steps"] == {"first": 0, "last": 29, "count": 30}
    _, answer = await tdbg_fetch("runs", run, "steps", params={"mode": "train"})
    assert answer["steps"] == list(range(30))


async def test_rules_are_listed(tdbg_fetch, run_id):
    code, answer = await tdbg_fetch("runs", await run_id(), "rules")
    assert code == 200
    assert {state["rule"]: state["status"] for state in answer["states"]}["dead_relu"] == "issue_found"
    assert answer["findings"][0]["severity"] == "warning"


async def test_patch_edits_what_people_may_edit(tdbg_fetch, run_id, run_path):
    run = await run_id()
    before = (run_path / "run.json").read_bytes()
    code, summary = await tdbg_fetch(
        "runs", run, method="PATCH", body={"name": "better", "tags": ["a", "b"], "notes": "hm <b>"}
    )
    assert code == 200
    assert (summary["name"], summary["tags"], summary["notes"]) == ("better", ["a", "b"], "hm <b>")
    assert (run_path / "run.json").read_bytes() == before
    _, answer = await tdbg_fetch("runs")
    assert answer["runs"][0]["name"] == "better"


async def test_muted_rule_keeps_its_findings_and_loses_its_badges(tdbg_fetch, run_id):
    run = await run_id()
    code, _ = await tdbg_fetch("runs", run, method="PATCH", body={"muted": ["dead_relu"]})
    assert code == 200
    _, rules = await tdbg_fetch("runs", run, "rules")
    assert rules["muted"] == ["dead_relu"]
    assert len(rules["findings"]) == 1
    _, detail = await tdbg_fetch("runs", run)
    assert detail["findings"] == {"notice": 0, "warning": 0, "critical": 0}
    _, tensors = await tdbg_fetch("runs", run, "tensors")
    assert all(tensor["severity"] is None for tensor in tensors["tensors"])
    await tdbg_fetch("runs", run, method="PATCH", body={"muted": []})
    assert (await tdbg_fetch("runs", run))[1]["findings"]["warning"] == 1


@pytest.fixture
def told(root):
    """A run with one finding that proposes `fix`."""

    def make(fix, status="running"):
        path = fake_run(root / "live", steps=3, status=status, name="live", close=False, findings=False)
        writer = FindingsWriter(path)
        writer.append(
            Finding("too_fast", Severity.CRITICAL, 1, 2, "The loss grows.", id="too_fast:1", fix=fix)
        )
        writer.close()
        return path

    return make


async def test_fix_of_a_finding_becomes_a_request_to_the_training(tdbg_fetch, run_id, told):
    path = told({"setting": "learning_rate", "factor": 0.1})
    run = await run_id("live")
    assert (await tdbg_fetch("runs", run, "rules"))[1]["fixes"] == {"too_fast:1": ""}
    code, answer = await tdbg_fetch("runs", run, "fix", method="POST", body={"finding": "too_fast:1"})
    assert code == 200
    request = json.loads((path / "control" / f"{answer['request']}.json").read_text())
    assert (request["kind"], request["state"]) == ("set", "pending")
    assert request["arguments"]["factor"] == 0.1


@pytest.mark.parametrize(
    ("state", "said", "words"),
    [("done", "from step 3 on.", "Applied: from step 3 on."), ("refused", "No.", "Refused: No.")],
)
async def test_what_became_of_a_fix_is_told_with_the_finding(tdbg_fetch, run_id, told, state, said, words):
    path = told({"setting": "learning_rate", "factor": 0.1})
    run = await run_id("live")
    _, request = await tdbg_fetch("runs", run, "fix", method="POST", body={"finding": "too_fast:1"})
    _, rules = await tdbg_fetch("runs", run, "rules")
    assert "It was asked for" in rules["fixes"]["too_fast:1"]
    assert rules["answers"] == {"too_fast:1": ""}
    control.answer(path, request["request"], state, said)
    _, rules = await tdbg_fetch("runs", run, "rules")
    assert rules["fixes"] == {"too_fast:1": ""}
    assert rules["answers"] == {"too_fast:1": words}


@pytest.mark.parametrize(
    ("fix", "status", "words"),
    [
        ({"setting": "learning_rate", "factor": 0.1}, "finished", "The run is finished"),
        ({"setting": "batch_size", "value": 8}, "running", "There is no setting 'batch_size'"),
    ],
)
async def test_fix_that_cannot_be_applied_says_why(tdbg_fetch, run_id, told, fix, status, words):
    path = told(fix, status)
    run = await run_id("live")
    _, rules = await tdbg_fetch("runs", run, "rules")
    assert words in rules["fixes"]["too_fast:1"]
    code, _ = await tdbg_fetch("runs", run, "fix", method="POST", body={"finding": "too_fast:1"})
    assert code == 409
    assert not list(path.glob("control/*.json"))


async def test_fix_of_an_unknown_finding_is_not_found(tdbg_fetch, run_id):
    run = await run_id()
    assert (await tdbg_fetch("runs", run, "fix", method="POST", body={"finding": "x"}))[0] == 404
    assert (await tdbg_fetch("runs", run, "fix", method="POST", body={}))[0] == 400


async def test_delete_removes_the_run_and_leaves_foreign_files(tdbg_fetch, run_id, run_path):
    (run_path / "mine.txt").write_text("keep me")
    run = await run_id()
    assert await tdbg_fetch("runs", run, method="DELETE") == (204, None)
    assert [path.name for path in run_path.iterdir()] == ["mine.txt"]
    assert (await tdbg_fetch("runs"))[1]["runs"] == []
    assert (await tdbg_fetch("runs", run))[0] == 404


async def test_delete_removes_the_directory_of_a_pure_run(tdbg_fetch, run_id, run_path):
    assert (await tdbg_fetch("runs", await run_id(), method="DELETE"))[0] == 204
    assert not run_path.exists()
    assert run_path.parent.exists()


async def test_delete_refuses_a_running_run(tdbg_fetch, run_id, root):
    path = fake_run(root / "live", steps=3, status="running", name="live", close=False)
    code, answer = await tdbg_fetch("runs", await run_id("live"), method="DELETE")
    assert (code, answer["reason"]) == (409, "ConflictError")
    assert "running" in answer["message"]
    assert (path / "run.json").exists()


async def test_stop_writes_a_request_the_training_can_read(tdbg_fetch, run_id, root):
    path = fake_run(root / "live", steps=3, status="running", name="live", close=False)
    code, answer = await tdbg_fetch(
        "runs", await run_id("live"), "stop", method="POST", body={"reason": "enough"}
    )
    assert code == 200
    request = json.loads((path / "control" / f"{answer['request']}.json").read_text())
    assert (request["kind"], request["reason"], request["state"]) == ("stop", "enough", "pending")


@pytest.mark.parametrize(
    ("name", "told"), [(None, "who runs the server"), ("0" * 32, "who runs the server"), ("ada", "ada")]
)
async def test_request_says_who_asked(jp_serverapp, tdbg_fetch, run_id, root, monkeypatch, name, told):
    """The token of a server names nobody: Jupyter makes up a random number for a name."""
    monkeypatch.setattr("getpass.getuser", lambda: "who runs the server")
    if name is not None:
        provider = jp_serverapp.identity_provider
        monkeypatch.setattr(provider, "generate_anonymous_user", lambda _handler: User(name))
    path = fake_run(root / "live", steps=3, status="running", name="live", close=False)
    code, answer = await tdbg_fetch("runs", await run_id("live"), "stop", method="POST", body={})
    assert code == 200
    assert json.loads((path / "control" / f"{answer['request']}.json").read_text())["by"] == told


async def test_stop_refuses_a_finished_run(tdbg_fetch, run_id):
    code, answer = await tdbg_fetch("runs", await run_id(), "stop", method="POST", body={})
    assert (code, answer["reason"]) == (409, "ConflictError")


async def test_profile_writes_a_request_the_training_can_read(tdbg_fetch, run_id, root):
    path = fake_run(root / "live", steps=3, status="running", name="live", close=False)
    live = await run_id("live")
    code, answer = await tdbg_fetch("runs", live, "profile", method="POST", body={"steps": 3})
    assert code == 200
    request = json.loads((path / "control" / f"{answer['request']}.json").read_text())
    assert (request["kind"], request["arguments"]["steps"]) == ("profile", 3)
    _, told = await tdbg_fetch("runs", live, "profile")
    assert told["profiles"] == []
    (asked,) = told["requests"]
    assert (asked["id"], asked["state"], asked["profile"]) == (answer["request"], "requested", "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"steps": 10**9}, "expected a whole number from 1 to 1000"),
        ({"steps": True}, "expected a whole number"),
        ({"seconds": "1"}, "expected a number"),
        ({"command": "rm"}, "unknown field 'command'"),
    ],
)
async def test_profile_refuses_what_makes_no_sense(tdbg_fetch, run_id, root, body, words):
    fake_run(root / "live", steps=3, status="running", name="live", close=False)
    code, answer = await tdbg_fetch("runs", await run_id("live"), "profile", method="POST", body=body)
    assert (code, answer["reason"]) == (400, "ConfigError")
    assert words in answer["message"]


async def test_profile_refuses_a_finished_run(tdbg_fetch, run_id):
    code, answer = await tdbg_fetch("runs", await run_id(), "profile", method="POST", body={})
    assert (code, answer["reason"]) == (409, "ConflictError")


async def test_setting_is_asked_for_and_told(tdbg_fetch, run_id, root):
    path = fake_run(root / "live", steps=3, status="running", name="live", close=False)
    run = await run_id("live")
    body = {"setting": "learning_rate", "factor": 0.1, "reason": "too fast"}
    code, answer = await tdbg_fetch("runs", run, "settings", method="POST", body=body)
    assert code == 200
    request = json.loads((path / "control" / f"{answer['request']}.json").read_text())
    assert (request["kind"], request["state"]) == ("set", "pending")
    assert request["arguments"] == {"setting": "learning_rate", "factor": 0.1}
    _, told = await tdbg_fetch("runs", run, "settings")
    (change,) = told["changes"]
    assert (change["id"], change["state"], change["reason"]) == (answer["request"], "pending", "too fast")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"setting": "learning_rate", "value": -1}, "learning_rate is -1; expected a number"),
        ({"setting": "learning_rate", "value": "1e-4"}, "expected a number"),
        ({"setting": "momentum", "value": 1}, "There is no setting 'momentum'"),
        ({"code": "import os"}, "unknown field 'code'"),
    ],
)
async def test_setting_that_makes_no_sense_is_refused(tdbg_fetch, run_id, root, body, sentence):
    path = fake_run(root / "live", steps=3, status="running", name="live", close=False)
    code, answer = await tdbg_fetch("runs", await run_id("live"), "settings", method="POST", body=body)
    assert code == 400
    assert sentence in answer["message"]
    assert list((path / "control").glob("*.json")) == []


async def test_setting_of_a_finished_run_is_a_conflict(tdbg_fetch, run_id):
    body = {"setting": "clip_norm", "value": "off"}
    code, answer = await tdbg_fetch("runs", await run_id(), "settings", method="POST", body=body)
    assert (code, answer["reason"]) == (409, "ConflictError")


async def test_ids_survive_a_restart(tdbg_fetch, run_id, root):
    from tdbg_lab.server.roots import entry, make_roots

    (same,) = make_roots([], str(root))
    assert await run_id() == entry(same, "runs/first").id
