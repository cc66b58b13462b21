"""Ask the detectors about one recorded run: at which step each of them alarms, and about what."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from benchmarks.detection.published import DETECTORS
from benchmarks.detection.recording import digest_of
from tdbg_lab.records import Severity
from tdbg_lab.rules.engine import Engine
from tdbg_lab.rules.feed import Feed
from tdbg_lab.rules.registry import list_rules, resolve_rules

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.rules.base import Rule
    from tdbg_lab.rules.view import RunView

__all__ = ["DEFAULT_SET", "SETS", "Alarm", "judge", "unanswered"]

DEFAULT_SET = "default"
OURS = (DEFAULT_SET, "classic")
SETS = (DEFAULT_SET, "classic", *DETECTORS)


@dataclass(frozen=True)
class Alarm:
    """A warning or worse, the first time it was given."""

    rule: str
    step: int
    """The step that was being checked when it was given."""
    severity: str
    tensor: str = ""
    module: str = ""
    message: str = ""
    cause: str = ""


def _ours(name: str) -> list[Rule]:
    if name == DEFAULT_SET:
        return resolve_rules("default")
    return [cls(classic=True) for cls in list_rules() if "classic" in {one.name for one in fields(cls)}]


class _Ours:
    """A set of our rules, and the alarms they gave so far."""

    def __init__(self, name: str) -> None:
        self.engine = Engine(_ours(name))
        self.alarms: list[Alarm] = []
        self.direct = True
        """Ask in this thread, without time limits: much faster where processors are few."""

    def check(self, step: int, view: RunView) -> None:
        try:
            changes = self.engine.check(step, view, strict=self.direct)
        except Exception:  # noqa: BLE001 - from now on the engine leaves out the rule that raised
            self.direct = False
            changes = self.engine.check(step, view)
        for judged, change in changes:
            finding = change.finding
            if finding.severity != Severity.NOTICE and change.news.value != "longer":
                self.alarms.append(
                    Alarm(judged.rule.name, step, str(finding.severity), finding.tensor, finding.module,
                          finding.message, str(getattr(finding, "cause", "")))
                )  # fmt: skip

    def errors(self) -> list[str]:
        return [f"{one.rule}: {one.reason}" for one in self.engine.states() if one.status == "error"]


class _Published:
    """Another tool's thresholds, and the first alarm of each diagnosis."""

    def __init__(self, name: str, facts: dict[str, Any]) -> None:
        self.detector = DETECTORS[name](facts)
        self.first: dict[str, Alarm] = {}

    def check(self, step: int, view: RunView) -> None:
        for diagnosis, tensor in self.detector.check(step, view):
            self.first.setdefault(diagnosis, Alarm(diagnosis, step, "warning", tensor, tensor))

    @property
    def alarms(self) -> list[Alarm]:
        return list(self.first.values())

    def errors(self) -> list[str]:
        return []


def _code(name: str) -> str:
    """Hash of what an answer of a set depends on."""
    rules = "tdbg_lab/rules/**/*.py" if name in OURS else "benchmarks/detection/published.py"
    return digest_of(rules, "benchmarks/detection/judging.py")


def _kept(place: Path, name: str) -> dict[str, Any]:
    """What a set answered before; the code is "" where it did not."""
    kept = place / f"{name}.json"
    answer: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {"code": ""}
    return answer


def unanswered(place: Path, sets: tuple[str, ...], *, fresh: bool = True) -> list[str]:
    """Sets that have to be asked: since they never were, or by older code if answers must be `fresh`."""
    kept = {name: _kept(place, name)["code"] for name in sets}
    return [name for name, code in kept.items() if not code or (fresh and code != _code(name))]


def judge(
    place: Path, facts: dict[str, Any], sets: tuple[str, ...] = SETS, *, fresh: bool = True
) -> dict[str, Any]:
    """Alarms of each set of detectors, by its name; kept beside the recording.

    They are asked anew when code changed, unless old answers will do (`fresh` is False).
    """
    asked: dict[str, _Ours | _Published] = {
        name: _Ours(name) if name in OURS else _Published(name, facts)
        for name in unanswered(place, sets, fresh=fresh)
    }
    if asked:
        _walk(place / "run", asked)
    for name, one in asked.items():
        answer = {
            "code": _code(name), "alarms": [asdict(alarm) for alarm in one.alarms], "errors": one.errors()
        }  # fmt: skip
        (place / f"{name}.json").write_text(json.dumps(answer))
    return {name: _kept(place, name) for name in sets}


def _walk(path: Path, asked: dict[str, _Ours | _Published]) -> None:
    """Ask all of them about each step in turn."""
    engines = [one.engine for one in asked.values() if isinstance(one, _Ours)]
    feed = Feed.of(path, [need for engine in engines for need in engine.needs])
    for step in feed.steps(last=True):
        for one in asked.values():
            one.check(step, feed.view)
    for engine in engines:
        engine.end()
