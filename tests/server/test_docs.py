"""`docs/http_api.md` says what the server does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tdbg_lab.server.routes import all_handlers
from tdbg_lab.server.wire import GpuJson, HostMessage, RunDetail, RunSummary, TensorJson

TEXT = (Path(__file__).parents[2] / "docs" / "http_api.md").read_text()
GROUP = re.compile(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)")
EXAMPLES = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]


def test_every_route_is_documented():
    for pattern, handler in all_handlers():
        path = GROUP.sub(lambda match: "{" + match[1].removeprefix("run_") + "}", pattern)
        path = path.replace("\\.", ".")
        for verb in ("get", "post", "patch", "delete"):
            if path.endswith("/stream"):
                assert "`/tdbg/stream`" in TEXT
            elif verb in vars(handler):
                assert f"`{verb.upper()} {path}" in TEXT, f"{verb} {path}"


def test_every_setting_is_documented():
    from tdbg_lab.server.app import TdbgApp

    own = {
        name: trait
        for name, trait in TdbgApp.class_traits(config=True).items()
        if trait.this_class is TdbgApp and trait.help
    }
    assert len(own) >= 8
    for name, trait in own.items():
        line = next(line for line in TEXT.splitlines() if f"`TdbgApp.{name}`" in line)
        assert f"`{trait.default()}`" in line, name


@pytest.mark.parametrize(
    ("marker", "shape"),
    [
        ("steps_per_second", RunSummary),
        ("dtype", TensorJson),
        ("swap", HostMessage),
        ("power_w", GpuJson),
    ],
)
def test_examples_have_the_fields_of_the_wire(marker, shape):
    found = [value for example in EXAMPLES for value in _objects(example) if marker in value]
    assert found
    for value in found:
        assert set(value) == set(shape.__annotations__) or set(value) == set(RunDetail.__annotations__)


def test_example_of_the_detail_has_its_fields():
    (found,) = [value for example in EXAMPLES for value in _objects(example) if "hyperparameters" in value]
    assert set(found) == set(RunDetail.__annotations__) - set(RunSummary.__annotations__)


async def test_answers_have_the_fields_of_the_wire(tdbg_fetch, run_id):
    run = await run_id()
    _, listed = await tdbg_fetch("runs")
    assert set(listed["runs"][0]) == set(RunSummary.__annotations__)
    _, detail = await tdbg_fetch("runs", run)
    assert set(detail) == set(RunDetail.__annotations__) | set(RunSummary.__annotations__)


async def test_example_of_a_parameter_has_its_fields(tdbg_fetch):
    _, answer = await tdbg_fetch("views")
    (found,) = [value for example in EXAMPLES for value in _objects(example) if "label" in value]
    assert set(found) == set(answer["views"][0]["params"][0])


def _objects(value):
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)
