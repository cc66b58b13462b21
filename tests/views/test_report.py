from __future__ import annotations

import html.parser
import json
import re

import pytest

from tdbg_lab.errors import StoreError
from tdbg_lab.views.report import write_report


class _Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.data, self._json = [], [], [], False

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.links += [attrs[name] for name in ("src", "href") if name in attrs]
        self._json = attrs.get("type") == "application/json"

    def handle_data(self, data):
        if self._json:
            self.data.append(json.loads(data))
            self._json = False


def _read(path):
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def test_report_is_one_page_that_needs_no_network(plain, tmp_path):
    page = _read(write_report(plain, tmp_path / "deep" / "report.html"))
    assert page.links == []
    assert page.tags.count("script") == 2 + len(page.data)
    views = [figure["layout"]["meta"]["tdbg"]["view"] for figure in page.data]
    assert views[:3] == ["rules", "scalars", "overview"]
    assert {"histogram", "latent", "timeline"} <= set(views)


def test_report_embeds_plotly_once(plain, tmp_path):
    text = write_report(plain, tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(re.findall(r"plotly\.js v\d", text)) == 1


def test_report_escapes_hostile_names(hostile, tmp_path):
    hostile.edit(name="</title><script>alert(1)</script>", notes="<img src=x onerror=alert(2)>")
    page = _read(write_report(hostile, tmp_path / "report.html"))
    assert "img" not in page.tags
    assert page.tags.count("script") == 2 + len(page.data)


def test_report_of_an_empty_run_says_what_to_do(nothing, tmp_path):
    page = _read(write_report(nothing, tmp_path / "report.html"))
    assert all(figure["layout"]["annotations"] for figure in page.data)


def test_report_leaves_the_reason_in_the_place_of_a_view_that_fails(plain, tmp_path):
    page = _read(write_report(plain, tmp_path / "report.html", sections=[("histogram", {"tensor": "none"})]))
    assert "could not be drawn" in page.data[0]["layout"]["annotations"][0]["text"]


def test_report_that_cannot_be_written_leaves_nothing_behind(plain, tmp_path):
    tmp_path.joinpath("taken").mkdir()
    with pytest.raises(StoreError):
        write_report(plain, tmp_path / "taken", sections=[])
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
