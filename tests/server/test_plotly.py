from __future__ import annotations

import json

import plotly
import pytest
from tornado.httpclient import HTTPClientError


async def test_code_of_the_installed_version_is_answered_as_javascript(jp_fetch):
    answer = await jp_fetch("tdbg", "plotly", plotly.__version__, "plotly.min.js")
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in answer.headers["Cache-Control"]
    assert len(answer.body) > 1_000_000


async def test_code_of_another_version_is_refused_with_both_versions(jp_fetch):
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch("tdbg", "plotly", "5.0.0", "plotly.min.js")
    assert refused.value.code == 404
    message = json.loads(refused.value.response.body)["message"]
    assert "5.0.0" in message
    assert plotly.__version__ in message
