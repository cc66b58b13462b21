"""A view of a run inside a notebook, drawn again while the run goes on."""

from __future__ import annotations

import html
import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import ipywidgets
from IPython.core.getipython import get_ipython
from IPython.display import display

from tdbg_lab.background import start_thread
from tdbg_lab.errors import TdbgError
from tdbg_lab.notebook.controls import Controls
from tdbg_lab.notebook.figure_widget import FigureWidget
from tdbg_lab.notebook.names import tensor_named, tensors_of
from tdbg_lab.notebook.pace import Pace
from tdbg_lab.notebook.still import FRAME_CSS, still
from tdbg_lab.notebook.theme import themed
from tdbg_lab.records import RunStatus
from tdbg_lab.run import Run
from tdbg_lab.views import call_view, find_view
from tdbg_lab.views.style import caption_of, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import plotly.graph_objects as go

__all__ = ["LiveView"]

log = logging.getLogger(__name__)


class LiveView:
    """A widget that draws one view of one run, and a still picture that stays when the kernel goes.

    A thread of its own reads the run directory, so the picture moves while a cell is busy. The thread
    ends when the run has ended or the view is closed; after the end of a run the controls still work.

    Attributes
    ----------
    widget
        Controls, figure and one line of text.
    drawings
        How often it was drawn.

    Raises
    ------
    NotFoundError
        There is no such view.
    ConfigError
        A parameter is unknown, or its value does not fit.
    """

    STILL_EVERY_S = 15.0
    """How often the still follows a run that goes on, seconds."""
    STILL_AFTER_CELL_S = 3.0
    """The same at the end of a cell, seconds."""
    LAST_TRIES = 5
    """How often the last picture is tried again when it could not be drawn."""

    def __init__(self, run: Run, view: str, params: Mapping[str, Any], *, pace: Pace | None = None) -> None:
        self.run = run
        self.view = find_view(view)
        self.view.check(params)  # before controls are made of them; whether tensors exist may be known later
        self.params: dict[str, Any] = dict(params)
        self._picture = FigureWidget()
        self._pace = pace or Pace()
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.drawings = 0
        self._pending = True
        self._refused: TdbgError | None = None
        """Why it could not be drawn the last time."""
        self._still_s = 0.0
        self._still_version = -1
        self._places: list[Any] = []
        self._shell: Any = None
        self._controls = Controls(self.view.params, self.params, self._chosen)
        self._text = ipywidgets.HTML()
        self.widget = ipywidgets.VBox([self._controls.box, self._picture, self._text])
        self.widget.add_class("tdbg-live")
        weakref.finalize(self, self._stopping.set)

    def __repr__(self) -> str:
        state = "closed" if self._stopping.is_set() else "live" if self.alive else "at rest"
        return f"<LiveView of {self.view.name} of run '{self.run.info.name}', {state}>"

    @property
    def alive(self) -> bool:
        """Whether the thread is following the run."""
        return self._thread is not None and self._thread.is_alive()

    def show(self) -> None:
        """Display the view in the current cell and follow the run.

        Raises
        ------
        TdbgError
            If it cannot be drawn as asked, of a run that has ended.
        """
        self._turn()
        if self._refused is not None and self._ended():
            raise self._refused
        text = f"{self.view.title} of run {self.run.info.name}"
        self._places = [
            display(
                {"text/html": f"<style class='tdbg-frame'>{FRAME_CSS}</style>", "text/plain": ""},
                raw=True,
                display_id=True,
            ),
            display(self.widget, display_id=True),
            display(still(self._picture.figure, text=text), raw=True, display_id=True),
        ]
        self._still_s = time.monotonic()
        self._shell = get_ipython()
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self._after_cell)
        self.start()

    def start(self) -> None:
        """Follow the run in a thread; does nothing when it has ended or is followed already."""
        if self.alive or self._ended() or self._stopping.is_set():
            return
        self._thread = start_thread(self._follow, f"tdbg-{self.view.name}")  # else drawn between cells

    def close(self) -> None:
        """Stop following and leave the still picture in the notebook; safe to call twice."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        with self._lock:
            self._keep_still()
            for place in self._places[:2]:
                place.update({"text/plain": ""}, raw=True)
            self._picture.close()
            self.widget.close()
        self._forget_cells()

    def refresh(self) -> bool:
        """Read what is new and draw it; True when the picture was drawn again."""
        changes = [each.refresh() for each in self._runs()]
        with self._lock:
            if not (any(changes) or self._pending):
                return False
            self._pending, self._refused = False, None
            self._controls.follow(self.run)
            try:
                figure = call_view(self.run, self.view.name, self._asked())
            except TdbgError as error:
                self._pending, self._refused = True, error  # it may have to do with what is not written yet
                self._say(str(error))
                return False
            self._picture.draw(themed(figure))
            self._say(self._caption(figure))
            self._show_tensor(tensor_of(figure))
            self.drawings += 1
            return True

    def _runs(self) -> Iterator[Run]:
        """The runs in the picture."""
        yield self.run
        for param in self.view.params:
            value = self.params.get(param.name)
            given = [value] if param.kind == "run" else value if param.kind == "runs" else None
            if isinstance(given, list | tuple):
                yield from (one for one in given if isinstance(one, Run))

    def _show_tensor(self, drawn: str | None) -> None:
        """Have the control say which tensor the view has chosen."""
        for param in self.view.params:
            if param.kind == "tensor" and self.params.get(param.name) is None:
                self._controls.set(param.name, drawn)
                return

    def _asked(self) -> dict[str, Any]:
        """The parameters, with short names of tensors made whole as soon as the tensor exists."""
        asked = {name: value for name, value in self.params.items() if value is not None}
        for param in self.view.params:
            word = asked.get(param.name)
            if param.kind == "tensor" and isinstance(word, str):
                known = tensors_of(self.run)
                if not known:
                    del asked[param.name]
                    continue
                whole = tensor_named(word, known, tensors_of(self.run, param.tensor_kinds))
                if whole is not None and whole != word:
                    self.params[param.name] = asked[param.name] = whole
                    self._controls.set(param.name, whole)
        return asked

    def _caption(self, figure: go.Figure) -> str:
        step = self.run.last_step
        none = "no step yet" if self.run.status is RunStatus.RUNNING else "no step"
        where = f"step {step}" if step >= 0 else none
        return f"{caption_of(figure)} Run {self.run.info.name}: {self.run.status}, {where}.".strip()

    def _say(self, text: str) -> None:
        # A widget's lines are as high as its buttons: too far apart where the words wrap.
        self._text.value = f'<small style="display: block; line-height: 1.4">{html.escape(text)}</small>'

    def _chosen(self, name: str, value: Any) -> None:
        """A control was moved: by the thread when there is one, else here."""
        with self._lock:
            self.params[name] = value
            self._pending = True
        self._wake.set()
        if not self.alive and not self._stopping.is_set():
            self._turn()
            self._keep_still()

    def _ended(self) -> bool:
        """Whether none of the runs goes on."""
        try:
            return not any(each.status == RunStatus.RUNNING and each.path.is_dir() for each in self._runs())
        except OSError:  # it cannot be told now whether its process lives
            return False

    def _follow(self) -> None:
        while not self._stopping.is_set():
            started_s, written_ns = time.thread_time(), self._written_ns()
            ended = self._ended()  # asked before the last drawing, which then has everything
            drew = self._turn()
            # rows are written before the run says that it has ended, and read after that
            if ended or all(each.info.status != RunStatus.RUNNING for each in self._runs()):
                self._finish()
                return
            if time.monotonic() - self._still_s > self.STILL_EVERY_S:
                self._keep_still()
            self._rest(self._pace.wait_s(time.thread_time() - started_s, drew=drew), written_ns)

    def _finish(self) -> None:
        """Leave the last picture of a run that has ended, also when drawing it fails at first."""
        for _ in range(self.LAST_TRIES):
            if not self._pending or self._stopping.wait(0.5):
                break
            self._turn()
        self._keep_still()

    def _rest(self, wait_s: float, written_ns: int) -> None:
        """Wait, but no longer than until a control is moved or the run's description is written again.

        `written_ns` is when it was written before the last drawing: the run may have ended during that.
        """
        end_s = time.monotonic() + wait_s
        while (left_s := end_s - time.monotonic()) > 0 and self._written_ns() == written_ns:
            if self._wake.wait(min(left_s, 0.5)):
                break
        self._wake.clear()

    def _written_ns(self) -> int:
        try:
            return (self.run.path / "run.json").stat().st_mtime_ns
        except OSError:
            return -1

    def _after_cell(self, _result: object = None) -> None:
        """A cell has ended: the notebook may be saved now, so the still should be the last picture."""
        if time.monotonic() - self._still_s < self.STILL_AFTER_CELL_S and not self._ended():
            return
        self._turn()
        if self.run.version != self._still_version:
            self._keep_still()
        if self._ended():
            self._forget_cells()

    def _forget_cells(self) -> None:
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.events.unregister("post_run_cell", self._after_cell)

    def _turn(self) -> bool:
        try:
            return self.refresh()
        except Exception:  # a picture must never end the thread, let alone a cell
            log.debug("could not draw the view %s", self.view.name, exc_info=True)
            self._pending = True
            self._say("This view could not be drawn; it will be tried again.")
            return False

    def _keep_still(self) -> None:
        """Bring the picture that a saved notebook keeps up to date."""
        self._still_s = time.monotonic()
        try:
            with self._lock:
                self._still_version = self.run.version
                if self._places:
                    text = f"{self.view.title} of run {self.run.info.name}"
                    self._places[2].update(still(self._picture.figure, text=text), raw=True)
        except Exception:  # the kernel may be on its way out
            log.debug("could not keep a still of the view %s", self.view.name, exc_info=True)
