"""Stores of SageMaker Debugger in the list and in views."""

from __future__ import annotations

import numpy as np

from tests.store.smdebug.writing import StoreWriter

LOSSES = {"losses": {"include_regex": ["[Ll]oss_(?!input).*output"]}}


def write(writer: StoreWriter, steps: range) -> None:
    for step in steps:
        weight = np.full((3, 4), step, np.float32)
        writer.write(step, {"CrossEntropyLoss_output_0": np.float32(1 / (step + 1)), "Net_fc.weight": weight})


async def test_store_is_listed_live_and_drawn(tdbg_fetch, root):
    writer = StoreWriter(root / "job" / "debug-output", LOSSES)
    writer.live()
    write(writer, range(5))
    code, answer = await tdbg_fetch("runs")
    assert code == 200
    (listed,) = answer["runs"]
    assert (listed["name"], listed["path"]) == ("job/debug-output", "job/debug-output")
    assert (listed["status"], listed["last_step"]) == ("running", 4)
    code, detail = await tdbg_fetch("runs", listed["id"])
    assert code == 200
    assert detail["loss"][0] == [0, 1.0]
    code, answer = await tdbg_fetch("runs", listed["id"], "tensors")
    assert {tensor["name"]: tensor["kind"] for tensor in answer["tensors"]} == {
        "CrossEntropyLoss_output_0": "loss",
        "Net_fc.weight": "weight",
    }
    body = {"params": {"tensor": "Net_fc.weight"}}
    code, answer = await tdbg_fetch("runs", listed["id"], "views", "histogram", method="POST", body=body)
    assert code == 200
    assert answer["figure"]["data"]


async def test_store_that_ended_is_listed_as_finished(tdbg_fetch, root):
    writer = StoreWriter(root / "store", LOSSES)
    writer.live()
    write(writer, range(2))
    _, answer = await tdbg_fetch("runs")
    assert answer["runs"][0]["status"] == "running"
    (writer.path / "claim.smd").unlink()
    writer.end()
    run = answer["runs"][0]["id"]
    code, detail = await tdbg_fetch("runs", run)
    while code == 200 and detail["status"] != "finished":
        code, detail = await tdbg_fetch("runs", run)
    assert detail["status"] == "finished"


async def test_store_takes_no_requests_and_is_not_deleted(tdbg_fetch, root):
    writer = StoreWriter(root / "store", LOSSES)
    writer.live()
    write(writer, range(2))
    _, answer = await tdbg_fetch("runs")
    run = answer["runs"][0]["id"]
    code, said = await tdbg_fetch("runs", run, "stop", method="POST", body={"reason": "x"})
    assert code == 409
    assert "takes no requests" in said["message"]
    code, said = await tdbg_fetch("runs", run, method="DELETE")
    assert code == 409
    assert "delete its folder yourself" in said["message"]
    assert (writer.path / "claim.smd").exists()
    code, said = await tdbg_fetch("runs", run, method="PATCH", body={"notes": "kept"})
    assert (code, said["notes"]) == (200, "kept")
