from __future__ import annotations

import html
import html.parser
import json
import re
import shutil
import subprocess
import sys

import pytest
from plotly import graph_objects as go

from tdbg_lab.errors import StoreError
from tdbg_lab.run import open_run
from tdbg_lab.views import view
from tdbg_lab.views.report import write_page, write_report
from tdbg_lab.views.tables import slow_step_table
from tests.views.timed import made


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


def test_report_on_a_run_with_a_name_that_is_no_utf8(plain, tmp_path):
    path = shutil.copytree(plain.path, tmp_path / "run")
    open_run(path).edit(name="caf\udce9")
    for ending in (".html", ".ipynb"):
        assert "caf?" in write_report(path, tmp_path / f"report{ending}").read_text(encoding="utf-8")


def test_report_of_an_empty_run_says_what_to_do(nothing, tmp_path):
    page = _read(write_report(nothing, tmp_path / "report.html"))
    assert all(figure["layout"]["annotations"] for figure in page.data)


def test_report_leaves_the_reason_in_the_place_of_a_view_that_fails(plain, tmp_path):
    page = _read(write_report(plain, tmp_path / "report.html", sections=[("histogram", {"tensor": "none"})]))
    assert "could not be drawn" in page.data[0]["layout"]["annotations"][0]["text"]


def test_report_leaves_the_reason_in_the_place_of_a_view_of_ones_own_that_fails(plain, tmp_path):
    @view(name="test_report_broken")
    def broken(run):
        raise KeyError("nothing of that name")

    sections = [("test_report_broken", {}), ("scalars", {})]
    page = _read(write_report(plain, tmp_path / "report.html", sections=sections))
    told = page.data[0]["layout"]["annotations"][0]["text"]
    assert "View test_report_broken could not be drawn" in told
    assert "KeyError" in told
    assert len(page.data) == 2


def test_report_that_cannot_be_written_leaves_nothing_behind(plain, tmp_path):
    tmp_path.joinpath("taken").mkdir()
    with pytest.raises(StoreError):
        write_report(plain, tmp_path / "taken", sections=[])
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_report_is_not_written_to_a_folder(plain):
    with pytest.raises(StoreError, match="is a directory; give the name of a file"):
        write_report(plain, "", sections=[])


def test_report_says_in_words_what_stands_out_and_what_to_do(plain, tmp_path):
    text = write_report(plain, tmp_path / "report.html").read_text(encoding="utf-8")
    said = html.unescape(text)
    assert "1 finding (1 warning); the first to look at:" in said
    assert re.search(
        r"<li>loss/CrossEntropyLoss fell from [\d.]+ to [\d.]+; its least is [\d.]+\.</li>", said
    )
    assert "<li>Lower the learning rate.</li>" in said
    assert "<th>Load</th><th>max</th><th>p99</th><th>p95</th><th>p50</th><th>min</th>" in said
    assert "Training loop" in said


def test_report_leaves_out_views_that_have_nothing_to_show(plain, tmp_path):
    page = _read(write_report(plain, tmp_path / "report.html"))
    views = [figure["layout"]["meta"]["tdbg"]["view"] for figure in page.data]
    assert {"phases", "step_times", "data_loading", "cores"} <= set(views)
    assert not {"operators", "flame", "ranks"} & set(views)


def test_report_tells_how_far_it_is_and_stays_small(plain, tmp_path):
    shares = []
    path = write_report(plain, tmp_path / "report.html", progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert path.stat().st_size < 15_000_000


def test_page_leaves_a_word_where_a_figure_is_too_large(plain, tmp_path):
    figure = go.Figure(go.Scatter(y=["x" * 1000] * 9_500))
    page = _read(write_page(plain, tmp_path / "page.html", [("Large", figure), ("Small", go.Figure())]))
    assert "too large for the page" in page.data[0]["layout"]["annotations"][0]["text"]
    assert (tmp_path / "page.html").stat().st_size < 15_000_000


def test_report_has_the_sections_of_the_profiling_report(plain, tmp_path):
    said = html.unescape(write_report(plain, tmp_path / "report.html").read_text(encoding="utf-8"))
    for head in (
        ("Part", "Time", "Share"),
        ("Work", "Share"),
        ("Step (ms)", "steps", "mean", "max", "p99", "p95", "p50", "min"),
        ("Rule", "What it looks for", "Advice", "Findings", "Checked", "Thresholds"),
    ):
        assert "".join(f"<th>{one}</th>" for one in head) in said
    assert "Dead ReLU found most: 1 finding." in said
    assert "<td>Training</td>" in said
    assert "<td>Forward, of both passes</td>" in said


def test_report_tells_what_slow_steps_are_made_of(tmp_path):
    run = made(tmp_path / "run", 200, extra=("checkpoint", 90, {50, 150}))
    table = slow_step_table(run)
    assert table.head[2] == "2 slow steps (ms)"
    assert table.rows[0] == ("checkpoint", "0", "90", "90.0%")
    assert table.rows[1][:3] == ("data", "6", "6")
    assert not slow_step_table(made(tmp_path / "even", 20)).rows


def test_notebook_shows_the_figures_and_the_code_that_draws_them(hostile, plain, tmp_path):
    page = json.loads(write_report(plain, tmp_path / "report.ipynb").read_text(encoding="utf-8"))
    assert (page["nbformat"], page["nbformat_minor"]) == (4, 5)
    code = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    namespace = {}
    exec(code[0]["source"], namespace)
    assert namespace["run"].path == plain.path
    drawn = [cell for cell in code if cell["outputs"]]
    assert len(drawn) == len(code) - 1 > 8
    (phases,) = (cell for cell in drawn if "'phases', {'show': 'pie'" in cell["source"])
    figure = eval(phases["source"], namespace)
    shown = phases["outputs"][0]["data"]["application/vnd.plotly.v1+json"]
    assert go.Figure(shown).data[0].labels == figure.data[0].labels
    assert len({cell["id"] for cell in page["cells"]}) == len(page["cells"])
    afresh = f"{code[0]['source']}\n{phases['source']}"
    subprocess.run([sys.executable, "-c", afresh], check=True, timeout=120)

    hostile.edit(name="</title><script>alert(1)</script>", notes="<img src=x onerror=alert(2)>")
    text = write_report(hostile, tmp_path / "hostile.ipynb").read_text(encoding="utf-8")
    markdown = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    assert not [one for one in markdown if "<script" in one or "<img" in one]
