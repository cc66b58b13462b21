"""Colours. Every one of them reads on a light and on a dark page and stays apart for colour-blind eyes.

Hosts set page, plot and font colours; views never do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.records import RuleStatus, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ACCENT",
    "BAD",
    "CLASSES",
    "DIVERGING",
    "GRID",
    "MUTED",
    "PHASES",
    "SEQUENTIAL",
    "SERIES",
    "SEVERITY",
    "SEVERITY_SYMBOLS",
    "STATUS",
    "faded",
    "gamma",
    "phase_colours",
    "pick",
    "ramp",
]

SERIES = (
    "#2f7ed8",
    "#e0851a",
    "#12977a",
    "#c9449a",
    "#4ba3d6",
    "#8a6bd1",
    "#9a8e1e",
    "#d64545",
)
"""For lines and points told apart by colour, in this order."""

CLASSES = (*SERIES, "#a0683c", "#8a8f98")
"""For the labels of points: ten, as in the ten digits."""

ACCENT = "#e8590c"
"""What the eye should go to: the shown step."""
BAD = "#e0328c"
"""NaN and infinities, in every view."""
MUTED = "#8a8f98"
"""What is there but does not matter now."""
GRID = "rgba(128,134,145,0.22)"
"""Grid lines, on any background."""

SEQUENTIAL = (
    "#4a58bf",
    "#3a76bb",
    "#2a8fae",
    "#22a48f",
    "#4bb673",
    "#93c94a",
    "#dfca2e",
)
"""Small to large (viridis without its darkest part, so that small values read on a dark page)."""

DIVERGING = ("#2166c4", "#6f9fd8", "#a3a7ad", "#e09a5c", "#cf4f12")
"""Negative, zero, positive."""

PHASES = {
    "data": "#e0851a",
    "forward": "#2f7ed8",
    "backward": "#8a6bd1",
    "optimizer": "#12977a",
    "eval": "#4ba3d6",
    "capture": "#7cb342",
    "boosting": "#8a6bd1",
    "step": "#5c6bc0",
    "copy": "#d2553f",
    "checkpoint": "#a0683c",
    "callback": "#9a8e1e",
    "logging": "#c9449a",
    "other": MUTED,
}
"""In the order of a step. A boosted model has no backward pass, whose colour its rounds have."""
_OTHER_PHASES = ("#d64545", "#00a3b4", "#e573b5", "#c49a00")
"""For phases of the user's own."""

SEVERITY = {Severity.NOTICE: "#4ba3d6", Severity.WARNING: "#e0851a", Severity.CRITICAL: "#d64545"}

SEVERITY_SYMBOLS = {Severity.NOTICE: "circle", Severity.WARNING: "triangle-up", Severity.CRITICAL: "diamond"}
"""Shapes of marks: severity is told by shape as well as by colour."""

STATUS = {
    RuleStatus.IN_PROGRESS: "#2f7ed8",
    RuleStatus.NO_ISSUE: "#12977a",
    RuleStatus.ISSUE_FOUND: "#d64545",
    RuleStatus.ERROR: "#c9449a",
    RuleStatus.STOPPED: MUTED,
    RuleStatus.NOT_APPLICABLE: MUTED,
}


def pick(index: int) -> str:
    """Series colour number `index`, starting again after the last."""
    return SERIES[index % len(SERIES)]


def phase_colours(names: Sequence[str]) -> list[str]:
    """A colour for each phase: those we know have theirs in every view, the others theirs by the alphabet."""
    others = sorted(set(names) - set(PHASES))
    own = {name: _OTHER_PHASES[place % len(_OTHER_PHASES)] for place, name in enumerate(others)}
    return [PHASES.get(name) or own[name] for name in names]


def faded(colour: str, alpha: float) -> str:
    """``#rrggbb`` as ``rgba(...)`` with this opacity."""
    red, green, blue = _rgb(colour)
    return f"rgba({red},{green},{blue},{alpha:g})"


def ramp(scale: Sequence[str], n: int) -> list[str]:
    """`n` colours evenly along a scale, first and last included."""
    if n == 1:
        return [scale[-1]]
    return [_mix(scale, i / (n - 1)) for i in range(n)]


def gamma(scale: Sequence[str], power: float, n: int = 24) -> list[tuple[float, str]]:
    """Plotly colour scale whose colours change as ``position ** (1 / power)``: small values stay visible."""
    return [((i / n) ** power, _mix(scale, i / n)) for i in range(n + 1)]


def _mix(scale: Sequence[str], position: float) -> str:
    place = position * (len(scale) - 1)
    left = min(int(place), len(scale) - 2)
    share = place - left
    pairs = zip(_rgb(scale[left]), _rgb(scale[left + 1]), strict=True)
    red, green, blue = (round(a + (b - a) * share) for a, b in pairs)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
