from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tdbg_lab.rules import manual
from tdbg_lab.server import rule_catalogue
from tdbg_lab.testing import fake_run
from tests.server.conftest import ReadOnly


@pytest.fixture
def ended(tdbg_fetch):
    """Wait for a check of a rule; answers how it ended."""

    async def wait(job, timeout_s=60):
        async def look():
            while True:
                code, answer = await tdbg_fetch("jobs", job)
                assert code == 200
                if answer["state"] not in {"queued", "running"}:
                    return answer
                await asyncio.sleep(0.05)

        return await asyncio.wait_for(look(), timeout_s)

    return wait


async def check(tdbg_fetch, run, rule, **parameters):
    return await tdbg_fetch(
        "runs", run, "rules", rule, "check", method="POST", body={"parameters": parameters}
    )


async def test_stricter_threshold_finds_what_a_looser_one_does_not(tdbg_fetch, run_id, root, ended):
    path = fake_run(root / "dying", name="dying", steps=60, layers=2)
    run = await run_id("dying")
    files = sorted(each for each in path.rglob("*") if each.is_file())
    found = []
    for threshold in (50, 100.0):
        code, job = await check(tdbg_fetch, run, "dead_relu", classic=True, threshold_layer=threshold)
        assert code == 200
        answer = await ended(job["job"])
        assert (answer["state"], answer["progress"]) == ("done", 1.0)
        assert answer["result"]["state"]["parameters"]["threshold_layer"] == threshold
        found.append(answer["result"]["found"])
        assert len(answer["result"]["findings"]) == found[-1]
    assert found == [1, 0]
    assert files == sorted(each for each in path.rglob("*") if each.is_file()), "nothing is written"


@pytest.mark.parametrize(
    ("rule", "parameters", "code", "words"),
    [
        ("no_such_rule", {}, 404, "rules of a notebook or script"),
        ("dead_relu", {"nonsense": 1}, 400, "has no parameter 'nonsense'"),
        ("dead_relu", {"threshold_layer": "many"}, 400, "expected a number"),
        ("dead_relu", {"threshold_layer": [1]}, 400, "is not a number"),
        ("dead_relu", {"actions": 1}, 400, "has no parameter 'actions'"),
    ],
)
async def test_what_does_not_fit_is_said_at_once(tdbg_fetch, run_id, rule, parameters, code, words):
    status, answer = await check(tdbg_fetch, await run_id(), rule, **parameters)
    assert status == code
    assert words in answer["message"]


async def test_number_that_is_none_is_refused(tdbg_fetch, run_id):
    body = json.dumps({"parameters": {"threshold_layer": float("nan")}}).encode()
    code, answer = await tdbg_fetch(
        "runs", await run_id(), "rules", "dead_relu", "check", method="POST", body=body
    )
    assert code == 400
    assert "finite" in answer["message"]


async def test_same_check_under_way_is_joined_and_can_be_cancelled(tdbg_fetch, run_id, root, ended):
    fake_run(root / "long", name="long", steps=60, layers=2)
    run = await run_id("long")
    jobs = [(await check(tdbg_fetch, run, "dead_relu", threshold_layer=40))[1]["job"] for _ in range(2)]
    assert jobs[0] == jobs[1]
    assert (await tdbg_fetch("jobs", jobs[0], method="DELETE"))[0] == 204
    answer = await ended(jobs[0])
    assert (answer["state"], answer["result"]) == ("cancelled", None)


async def test_checks_under_way_are_bounded(tdbg_fetch, run_id, root):
    fake_run(root / "long", name="long", steps=60, layers=2)
    run = await run_id("long")
    answers = [await check(tdbg_fetch, run, "dead_relu", threshold_layer=40 + i) for i in range(6)]
    codes = [code for code, _ in answers]
    assert codes[0] == 200
    assert 409 in codes
    for code, answer in answers:
        if code == 200:
            await tdbg_fetch("jobs", answer["job"], method="DELETE")


async def test_reader_may_not_start_a_check(jp_serverapp, tdbg_fetch, run_id):
    run = await run_id()
    jp_serverapp.web_app.settings["authorizer"] = ReadOnly()
    assert (await check(tdbg_fetch, run, "dead_relu"))[0] == 403


async def test_unknown_check_is_not_found(tdbg_fetch):
    code, answer = await tdbg_fetch("jobs", "0" * 32)
    assert code == 404
    assert "start it again" in answer["message"]


async def test_catalogue_explains_rules_and_thresholds(tdbg_fetch):
    code, answer = await tdbg_fetch("rules")
    assert code == 200
    rules = {rule["name"]: rule for rule in answer["rules"]}
    dead = rules["dead_relu"]
    assert dead["title"]
    assert len(dead["explanation"]) > 20
    thresholds = {one["name"]: one for one in dead["thresholds"]}
    assert "actions" not in thresholds
    assert thresholds["threshold_layer"]["type"] == "float"
    assert thresholds["threshold_layer"]["help"]
    assert not [name for name, rule in rules.items() if "``" in str(rule)]


def test_catalogue_is_read_once_and_by_one_thread_at_a_time(monkeypatch):
    """Python 3.11 may fail with a SystemError where two threads parse sources at once."""
    inside, together, read = 0, 0, []

    def slow(cls):
        nonlocal inside, together
        inside += 1
        together = max(together, inside)
        time.sleep(0.002)
        read.append(cls)
        inside -= 1
        return []

    monkeypatch.setattr(manual, "thresholds_of", slow)
    rule_catalogue._told.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: rule_catalogue.catalogue(), range(4)))
    rule_catalogue._told.cache_clear()
    assert all(one == told[0] for one in told)
    assert (together, len(read)) == (1, len(set(read)))
