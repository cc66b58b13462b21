"""Live views in a real kernel, seen as a front end sees them: by the messages."""

from __future__ import annotations

import time
from queue import Empty

import pytest
from jupyter_client.manager import start_new_kernel

from tdbg_lab.notebook.still import PLOTLY_MIME

WIDGET_MIME = "application/vnd.jupyter.widget-view+json"

pytestmark = pytest.mark.slow


class Kernel:
    """A kernel and everything it has published."""

    def __init__(self, client):
        self._client = client
        self.messages = []

    def run(self, code, timeout_s=120.0):
        """Run a cell; what was published meanwhile, without errors."""
        sent = self._client.execute(code)
        first = len(self.messages)
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            try:
                message = self._client.get_iopub_msg(timeout=1.0)
            except Empty:
                continue
            self.messages.append(message)
            if message["parent_header"].get("msg_id") != sent:
                continue
            assert message["msg_type"] != "error", "\n".join(message["content"]["traceback"])
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return self.messages[first:]
        raise AssertionError("the cell did not end")


@pytest.fixture
def kernel(tmp_path):
    manager, client = start_new_kernel(startup_timeout=120, cwd=str(tmp_path))
    try:
        yield Kernel(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _of(messages, kind):
    return [message["content"] for message in messages if message["msg_type"] == kind]


def _drawings(messages):
    """The figures that a browser is sent."""
    changes = [*_of(messages, "comm_open"), *_of(messages, "comm_msg")]
    figures = [content["data"].get("state", {}).get("figure", {}) for content in changes]
    return [figure for figure in figures if figure.get("data")]


SHOW = """
import time
from tdbg_lab.testing.fake import FakeTraining
training = FakeTraining("runs/fake")
%load_ext tdbg_lab
%tdbg show histograms --tensor layer1
live = next(iter(get_ipython()._tdbg_live_views.values()))
live._pace.share = 1.0  # the machine of a test may be busy with other things
"""

BUSY = """
import time
end_s, enough = time.monotonic() + 90, live.drawings + 4
while live.drawings < enough and time.monotonic() < end_s:
    training.step()
    time.sleep(0.02)
print("busy no more")
"""


def test_live_view_moves_while_a_cell_is_busy_and_leaves_a_still(kernel):
    shown = _of(kernel.run(SHOW), "display_data")
    assert [WIDGET_MIME in each["data"] for each in shown] == [False, True, False]
    assert PLOTLY_MIME in shown[2]["data"]

    messages = kernel.run(BUSY)
    said = next(i for i, message in enumerate(messages) if message["msg_type"] == "stream")
    during = _drawings(messages[:said])
    assert len(during) >= 2  # the last may come after the print

    messages = kernel.run("training.end('finished')\nlive._thread.join(60)\nprint(live)")
    assert "at rest" in _of(messages, "stream")[-1]["text"]
    still = _of(messages, "update_display_data")[-1]
    assert still["transient"] == shown[2]["transient"]
    assert len(still["data"][PLOTLY_MIME]["data"]) > 0
    assert "activation/layer1" in str(still["data"][PLOTLY_MIME]["layout"])


def test_last_picture_shows_the_last_step_soon_after_the_end_however_slow_the_pace(kernel):
    kernel.run(SHOW)
    kernel.run("live._pace.interval_s = live._pace.slowest_s = 60.0; training.step(); time.sleep(3)")
    messages = kernel.run(
        "for _ in range(20): training.step()\n"
        "training.end('finished')\n"
        "live._thread.join(10)\n"
        "print(live.alive, live.run.last_step, live._text.value)\n"
    )
    said = _of(messages, "stream")[-1]["text"]
    assert said.startswith("False 20 ")
    assert "finished, step 20" in said
    assert "at step 20:" in str(_drawings(messages)[-1]["layout"]["meta"])


def test_live_view_controls_work_after_the_end_of_the_run(kernel):
    kernel.run(SHOW)
    messages = kernel.run(
        "for _ in range(5): training.step()\n"
        "training.end('finished')\n"
        "live._thread.join(60)\n"
        "live._controls._parts['tensor'].value = 'gradient/layer0.weight'\n"
        "print(live._picture.figure['layout']['meta'])\n"
    )
    assert "gradient/layer0.weight" in _of(messages, "stream")[-1]["text"]


def test_live_view_is_replaced_when_its_cell_runs_again_and_closes_for_good(kernel):
    kernel.run(SHOW)
    messages = kernel.run(
        "from tdbg_lab.notebook import show\n"
        "live = show(training.path, 'losses')\n"
        "live.close(); live.close()\n"
        "print(live, live.alive)\n"
        "training.end('finished')"
    )
    assert "closed> False" in _of(messages, "stream")[-1]["text"]
    emptied = [each for each in _of(messages, "update_display_data") if PLOTLY_MIME not in each["data"]]
    assert len(emptied) == 2
    assert _of(messages, "comm_close")


def test_view_is_drawn_between_cells_where_no_more_threads_may_be_started(kernel):
    kernel.run(
        """
import threading
def refused(_thread):
    raise RuntimeError("can't start new thread")
begin, threading.Thread.start = threading.Thread.start, refused
"""
    )
    said = kernel.run(SHOW + "\nthreading.Thread.start = begin\ntraining.step()\nlive.STILL_AFTER_CELL_S = 0")
    assert _of(said, "stream") == []
    (printed,) = _of(kernel.run("print(live.alive, live.drawings)"), "stream")
    assert printed["text"] == "False 2\n"


def test_view_that_can_never_be_drawn_is_refused_in_a_sentence(kernel):
    kernel.run(SHOW)
    messages = kernel.run(
        "for _ in range(5): training.step()\n"
        "training.end('finished')\n"
        "%tdbg show histograms --tensor layer9\n"
    )
    assert _of(messages, "display_data") == []
    said = _of(messages, "stream")[-1]["text"]
    assert said.startswith("Parameter 'tensor': the run has no tensor 'layer9'. Did you mean")


def test_live_view_survives_a_run_directory_that_goes_away(kernel):
    kernel.run(SHOW)
    messages = kernel.run(
        "import shutil, time\n"
        "training.end('finished'); shutil.rmtree(training.path)\n"
        "live._thread.join(60)\n"
        "print(live.alive)"
    )
    assert _of(messages, "stream")[-1] == {"name": "stdout", "text": "False\n"}
