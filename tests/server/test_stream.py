from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys

import pytest

from tdbg_lab.server.routes.stream import CloseCode
from tdbg_lab.testing import fake_run
from tdbg_lab.testing.fake import FakeTraining

WRITER = """
import sys, time
from tdbg_lab.testing.fake import FakeTraining
training = FakeTraining(sys.argv[1], layers=2)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(40):
    training.step()
    time.sleep(0.02)
training.find()
training.end("finished")
"""


@pytest.fixture
def writer():
    """Start a training process that waits for a line before its first step."""
    started = []

    def start(path):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def go(process):
    process.stdin.write("\n")
    process.stdin.flush()


async def test_ping_is_answered(tdbg_socket):
    async with tdbg_socket() as client:
        await client.send(type="ping")
        assert (await client.until(lambda m: m["type"] == "pong")) == {"type": "pong"}


async def test_watched_run_is_told_at_once_and_after_each_change(tdbg_socket, run_id, root, writer):
    process = writer(root / "live")
    run = await run_id("live")
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[run])
        first = await client.until(lambda m: m["type"] == "run")
        assert first["summary"]["id"] == run
        assert first["last_step"] == -1
        go(process)
        seen = [first]
        while seen[-1]["summary"]["status"] == "running":
            seen.append(await client.until(lambda m: m["type"] == "run"))
    steps = [message["last_step"] for message in seen]
    versions = [message["version"] for message in seen]
    assert steps[-1] == 39
    assert steps == sorted(steps)
    assert versions == sorted(versions)
    assert len(set(steps)) > 5, "updates came while the run was written"
    assert seen[-1]["summary"]["status"] == "finished"
    assert seen[-2]["summary"]["steps_per_second"] > 0


async def test_finding_is_told_to_everybody(tdbg_socket, root, run_path, tdbg_fetch):
    training = FakeTraining(root / "live", layers=2)
    training.step()
    async with tdbg_socket() as client:
        await client.until(lambda m: m["type"] == "runs")
        await asyncio.sleep(0.5)
        training._start_ns += 10**12  # the finding is later than the server's start
        training.find()
        message = await client.until(lambda m: m["type"] == "finding")
        assert message["finding"]["rule"] == "dead_relu"
        assert message["finding"]["view"]["name"] == "histogram"
        training.end()


async def test_finding_is_told_also_after_the_clock_was_set_back(tdbg_socket, root):
    training = FakeTraining(root / "live", layers=2)
    training.step()
    async with tdbg_socket() as client:
        await client.until(lambda m: m["type"] == "runs")
        await asyncio.sleep(0.5)
        training._start_ns -= 3600 * 10**9
        training.find()
        message = await client.until(lambda m: m["type"] == "finding")
        assert message["finding"]["rule"] == "dead_relu"
        training.end()


async def test_new_run_is_told_with_its_findings_also_after_the_clock_was_set_back(
    tdbg_socket, root, jp_serverapp
):
    services = jp_serverapp.web_app.settings["tdbg_services"]
    services.announcer._since_ns += 3600 * 10**9  # the clock was ahead by an hour when the server started
    path = fake_run(root / "live", steps=1, layers=2, status="running", findings=True)
    assert path.is_dir()
    async with tdbg_socket() as client:
        message = await client.until(lambda m: m["type"] == "finding")
        assert message["finding"]["rule"] == "dead_relu"


async def test_finding_of_a_run_that_took_the_place_of_another_is_told(tdbg_socket, root):
    async with tdbg_socket() as client:
        for _ in range(2):
            path = fake_run(root / "live", steps=1, layers=2, status="running", findings=True)
            await client.until(lambda m: m["type"] == "finding")
            shutil.rmtree(path)


async def test_finding_from_before_the_server_started_is_told_to_nobody(tdbg_socket, root):
    training = FakeTraining(root / "live", layers=2)
    training._start_ns -= 3600 * 10**9
    training.step()
    training.find()
    async with tdbg_socket() as client:
        await client.until(lambda m: m["type"] == "runs")
        await asyncio.sleep(0.5)
        training.end("finished")
        await client.send(type="ping")
        messages = [await client.receive()]
        while messages[-1]["type"] != "pong":
            messages.append(await client.receive())
        assert all(message["type"] != "finding" for message in messages)


async def test_two_runs_are_told_apart(tdbg_socket, run_id, root, writer):
    processes = [writer(root / name) for name in ("one", "two")]
    ids = [await run_id(name) for name in ("one", "two")]
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=ids)
        for process in processes:
            go(process)
        last = {}
        while len(last) < 2 or any(m["summary"]["status"] == "running" for m in last.values()):
            message = await client.until(lambda m: m["type"] == "run")
            last[message["summary"]["id"]] = message
    assert {run: message["last_step"] for run, message in last.items()} == dict.fromkeys(ids, 39)


async def test_deleted_run_is_told_as_removed(tdbg_socket, run_id, run_path):
    run = await run_id()
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[run])
        await client.until(lambda m: m["type"] == "run")
        shutil.rmtree(run_path)
        assert (await client.until(lambda m: m["type"] == "removed")) == {"type": "removed", "id": run}


async def test_list_asked_for_after_removed_lacks_the_run(
    tdbg_socket, tdbg_fetch, run_id, run_path, monkeypatch
):
    run = await run_id()
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[run])
        await client.until(lambda m: m["type"] == "run")
        # As if the folders had been looked at just before: a list that young is answered as it is.
        monkeypatch.setattr("tdbg_lab.server.catalog.FRESH_S", 60.0)
        await tdbg_fetch("runs")
        shutil.rmtree(run_path)
        await client.until(lambda m: m["type"] == "removed")
        _, answer = await tdbg_fetch("runs")
        assert run not in [each["id"] for each in answer["runs"]]


async def test_unknown_run_is_told_as_removed(tdbg_socket):
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=["0123456789abcdef"])
        message = await client.until(lambda m: m["type"] == "removed")
        assert message["id"] == "0123456789abcdef"


async def test_new_run_is_told_as_a_change_of_the_list(tdbg_socket, root):
    async with tdbg_socket() as client:
        await client.send(type="ping")
        await client.until(lambda m: m["type"] == "pong")
        fake_run(root / "runs" / "new", steps=2)
        assert await client.until(lambda m: m["type"] == "runs")


async def test_slow_client_does_not_grow_memory(jp_ws_fetch, jp_serverapp):
    hub = jp_serverapp.web_app.settings["tdbg_services"].hub
    socket = await jp_ws_fetch("tdbg", "stream")  # nobody reads: the client takes one message
    while not hub._clients:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    (client,) = hub._clients
    for number in range(2000):
        hub.broadcast(str(number), {"type": "removed", "id": "x" * 100_000})
        if number % 20 == 0:
            await asyncio.sleep(0.001)
    assert len(client.outbox) <= 512
    assert client.outbox.dropped > 1000, "messages went into a buffer without a bound"
    socket.close()


async def test_finding_of_a_muted_rule_is_told_to_nobody_even_when_heard_again(tdbg_socket, root, tdbg_fetch):
    training = FakeTraining(root / "live", layers=1)
    training.step()
    _, answer = await tdbg_fetch("runs")
    run = answer["runs"][0]["id"]
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[run])
        await tdbg_fetch("runs", run, method="PATCH", body={"muted": ["dead_relu"]})
        training._start_ns += 10**12  # the finding is later than the server's start
        training.find()
        training.end("finished")
        await client.until(lambda m: m["type"] == "run" and m["summary"]["status"] == "finished")
        await tdbg_fetch("runs", run, method="PATCH", body={"muted": [], "notes": "heard"})
        messages = [await client.receive()]
        while messages[-1]["type"] != "run" or messages[-1]["summary"]["findings"]["warning"] != 1:
            messages.append(await client.receive())
        await client.send(type="ping")
        while messages[-1]["type"] != "pong":
            messages.append(await client.receive())
        assert all(message["type"] != "finding" for message in messages)


async def test_edit_is_told_to_who_watches(tdbg_socket, tdbg_fetch, run_id):
    run = await run_id()
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[run])
        await client.until(lambda m: m["type"] == "run")
        await tdbg_fetch("runs", run, method="PATCH", body={"notes": "new"})
        assert await client.until(lambda m: m["type"] == "run" and m["summary"]["notes"] == "new")


async def test_unwatched_run_is_told_no_more(tdbg_socket, run_id, root, jp_serverapp):
    training = FakeTraining(root / "live", layers=1)
    training.step()
    run = await run_id("live")
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[run])
        await client.until(lambda m: m["type"] == "run")
        await client.send(type="watch", runs=[])
        await client.send(type="ping")
        await client.until(lambda m: m["type"] == "pong")
        training.step()
        message = await client.until(lambda m: m["type"] in {"run", "runs"})
        assert message["type"] == "runs"
    training.end()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "[]",
            '{"type": "evil"}',
            '{"type": "watch", "runs": "x"}',
            '{"type": "watch", "runs": [1]}',
        ),
        *('{"type": "host"}', '{"type": "host", "on": 1}'),
    ],
)
async def test_bad_message_closes_the_socket(jp_ws_fetch, text):
    socket = await jp_ws_fetch("tdbg", "stream")
    await socket.write_message(text)
    while await asyncio.wait_for(socket.read_message(), 10) is not None:
        pass
    assert socket.close_code == CloseCode.BAD_MESSAGE


async def test_tail_is_closed_some_time_after_the_last_client(tdbg_socket, run_id, jp_serverapp):
    run = await run_id()
    tails = jp_serverapp.web_app.settings["tdbg_services"].tails
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[run])
        await client.until(lambda m: m["type"] == "run")
        assert tails.get(run) is not None
    for _ in range(100):
        if tails.get(run) is None:
            break
        await asyncio.sleep(0.05)
    assert tails.get(run) is None


async def test_finding_and_end_go_over_the_event_bus(tdbg_socket, jp_serverapp, root, run_id):
    events = []

    async def listen(logger, schema_id, data):
        events.append((schema_id.rsplit("/", 2)[1], data))

    jp_serverapp.event_logger.add_listener(
        schema_id="https://schema.jupyter.org/tdbg_lab/run/v1", listener=listen
    )
    jp_serverapp.event_logger.add_listener(
        schema_id="https://schema.jupyter.org/tdbg_lab/finding/v1", listener=listen
    )
    training = FakeTraining(root / "live", layers=2)
    training.step()
    async with tdbg_socket() as client:
        await client.send(type="watch", runs=[await run_id("live")])
        await client.until(lambda m: m["type"] == "run")
        training._start_ns += 10**12
        training.find()
        await client.until(lambda m: m["type"] == "finding")
        training.end("stopped")
        await client.until(lambda m: m["type"] == "run" and m["summary"]["status"] == "stopped")
    assert [data["status"] for kind, data in events if kind == "run"] == ["running", "stopped"]
    assert [data["rule"] for kind, data in events if kind == "finding"] == ["dead_relu"]
