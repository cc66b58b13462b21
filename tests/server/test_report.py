"""A report that the panel asks for: written by a worker, downloaded as a file."""

from __future__ import annotations

import asyncio
import json

import pytest

from tdbg_lab.server.report import Reports, file_name
from tdbg_lab.testing import fake_run
from tests.server.conftest import ReadOnly


@pytest.fixture
def ended(tdbg_fetch):
    """Wait for a report; answers how it ended, and all that was told of its progress."""

    async def wait(job, timeout_s=120):
        shares = []

        async def look():
            while True:
                code, answer = await tdbg_fetch("jobs", job)
                assert code == 200
                shares.append(answer["progress"])
                if answer["state"] not in {"queued", "running"}:
                    return answer
                await asyncio.sleep(0.05)

        return await asyncio.wait_for(look(), timeout_s), shares

    return wait


async def test_report_is_written_and_downloaded(jp_fetch, tdbg_fetch, root, run_id, ended):
    path = fake_run(root / "small", name="Größe 5/../x", steps=12, layers=1)
    files = sorted(path.parent.rglob("*"))
    run = await run_id("Größe 5/../x")
    code, job = await tdbg_fetch("runs", run, "report", method="POST")
    assert (code, job["result"]) == (200, None)
    code, same = await tdbg_fetch("runs", run, "report", method="POST")
    assert (code, same["job"]) == (200, job["job"]), "the one under way is joined"
    answer, shares = await ended(job["job"])
    assert answer["state"] == "done", answer["message"]
    assert shares == sorted(shares)
    response = await jp_fetch("tdbg", "jobs", job["job"], "report")
    assert len(response.body) == answer["result"]["bytes"]
    assert answer["result"]["file"] == "Größe-5-..-x-report.html"
    assert b"training report</title>" in response.body
    assert response.headers["Content-Type"].startswith("text/html")
    assert response.headers["Content-Disposition"].startswith(
        "attachment; filename*=utf-8''Gr%C3%B6%C3%9Fe-5"
    )
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]
    notebook = await jp_fetch("tdbg", "jobs", job["job"], "report", params={"format": "notebook"})
    assert json.loads(notebook.body)["nbformat"] == 4
    assert ".ipynb" in notebook.headers["Content-Disposition"]
    code, said = await tdbg_fetch("jobs", job["job"], "report", params={"format": "pdf"})
    assert (code, said["message"]) == (400, "The format of a report is 'html' or 'notebook'.")
    assert files == sorted(path.parent.rglob("*")), "nothing is written below the root"


async def test_report_is_cancelled_and_cannot_be_downloaded(tdbg_fetch, run_id, ended):
    _, job = await tdbg_fetch("runs", await run_id(), "report", method="POST")
    assert (await tdbg_fetch("jobs", job["job"], "report"))[0] == 404, "not written yet"
    assert (await tdbg_fetch("jobs", job["job"], method="DELETE"))[0] == 204
    answer, _ = await ended(job["job"])
    assert (answer["state"], answer["result"]) == ("cancelled", None)
    code, answer = await tdbg_fetch("jobs", job["job"], "report")
    assert code == 404
    assert "start it again" in answer["message"]


def test_report_that_cannot_be_removed_is_left_to_the_end_of_the_server(tmp_path):
    """On Windows, as long as its worker writes it: a folder in its place is as hard to remove as a file."""
    asked = []

    class Asked:
        def start(self, _key, task, *, drop):
            asked.append((task, drop))

    reports = Reports(Asked())
    reports.start("0" * 16, tmp_path, "first")
    ((task, drop),) = asked
    task.target.mkdir()
    drop()
    assert task.target.exists()
    reports.close()
    assert not task.target.exists()


async def test_report_that_fails_says_why_in_one_sentence(jp_serverapp, tdbg_fetch, run_id, ended):
    services = jp_serverapp.web_app.settings["tdbg_services"]
    run = await run_id()
    taken = services.reports.start("other", (await services.catalog.get(run)).directory / "gone", "other")
    answer, _ = await ended(taken["job"])
    assert answer["state"] == "failed"
    assert answer["message"].endswith(".")
    assert "gone" in answer["message"]
    assert "Traceback" not in answer["message"]


async def test_reader_may_not_start_a_report(jp_serverapp, tdbg_fetch, run_id):
    run = await run_id()
    jp_serverapp.web_app.settings["authorizer"] = ReadOnly()
    assert (await tdbg_fetch("runs", run, "report", method="POST"))[0] == 403


async def test_report_of_an_unknown_run_is_not_found(tdbg_fetch):
    code, answer = await tdbg_fetch("runs", "0" * 16, "report", method="POST")
    assert code == 404
    assert "list the runs again" in answer["message"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first", "first-report.html"),
        ("../../etc/passwd", "etc-passwd-report.html"),
        ('a"b\r\nc', "a-b-c-report.html"),
        ("...", "run-report.html"),
        ("", "run-report.html"),
        ("x" * 300, "x" * 100 + "-report.html"),
    ],
)
def test_file_name_is_plain(name, expected):
    assert file_name(name) == expected
