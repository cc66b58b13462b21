from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tdbg_lab.records import Finding, Severity, ViewRef
from tdbg_lab.server.jsonable import encode, jsonable


def test_non_finite_numbers_travel_as_texts():
    assert json.loads(encode([math.nan, math.inf, -math.inf, 1.5])) == ["NaN", "Infinity", "-Infinity", 1.5]
    assert jsonable(np.array([np.nan, 1.0])) == ["NaN", 1.0]
    assert jsonable(np.float32("inf")) == "Infinity"


def test_records_become_objects():
    finding = Finding("r", Severity.CRITICAL, 1, 2, "m", view=ViewRef("scalars", {"a": np.int64(3)}))
    value = jsonable(finding)
    assert (value["severity"], value["view"]) == ("critical", {"name": "scalars", "params": {"a": 3}})


def test_what_has_no_meaning_is_refused_and_depth_is_bounded():
    with pytest.raises(TypeError, match="object has no meaning"):
        jsonable(object())
    deep = []
    for _ in range(100):
        deep = [deep]
    assert encode(deep).count(b"[") < 40
    assert b"..." in encode(deep)
