"""Profiles on demand in a run directory: ``rank-*/profile/step-*/``.

=========================  ==========================================================
``window.json``            which steps, when, and what could not be recorded
``trace.json.gz``          Chrome trace of torch.profiler, for Perfetto and others
``python.speedscope.json`` Python functions by samples, for speedscope
``python.pstats``          Python functions by calls, for `pstats` and SnakeViz
``digest.json``            what the views draw, made of the files above
``use.json``               how the steps used their device: what rules look at
=========================  ==========================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.store.jsonable import int_in
from tdbg_lab.store.layout import entries, list_ranks, read_json, subfolder
from tdbg_lab.store.limits import MAX_TEXT_CHARS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "DIGEST",
    "FACTS",
    "MAX_PROFILES",
    "PROFILES",
    "PROFILE_FOLDER",
    "USE",
    "ProfileInfo",
    "list_profiles",
    "read_digest",
]

PROFILES: Final = "profile"
FACTS: Final = "window.json"
DIGEST: Final = "digest.json"
USE: Final = "use.json"
MAX_PROFILES: Final = 64
"""Profiles of one rank."""
MAX_DIGEST_BYTES: Final = 16 * 2**20
PROFILE_FOLDER: Final = re.compile(r"step-(\d{12})(?:-\d{1,3})?")
"""Name of a profile: its first step."""
_MAX_PROBLEMS = 32


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """One profile of one rank."""

    rank: int
    name: str
    """Name of its folder."""
    path: Path
    first_step: int
    last_step: int
    start_ns: int
    """Since the Unix epoch."""
    duration_ns: int
    problems: tuple[str, ...]
    """What could not be recorded, and why."""
    ready: bool
    """Whether its digest is there."""
    files: tuple[str, ...]
    """Traces that open elsewhere."""


def list_profiles(run_path: Path) -> list[ProfileInfo]:
    """All profiles whose recording is over, oldest first; what cannot be read is left out."""
    found = []
    for rank, directory in list_ranks(run_path):
        root = subfolder(directory, PROFILES)
        if root is None:
            continue
        names = sorted(one.name for one in entries(root) if PROFILE_FOLDER.fullmatch(one.name))
        for name in names[:MAX_PROFILES]:
            folder = subfolder(root, name)
            if folder is not None:
                try:
                    found.append(_info(rank, folder))
                except (OSError, ValueError, KeyError):
                    continue
    return sorted(found, key=lambda one: (one.start_ns, one.rank))


def read_digest(info: ProfileInfo) -> dict[str, Any]:
    """What the views draw of a profile.

    Raises
    ------
    OSError, ValueError
        It is not there yet, too large or broken.
    """
    return read_json(info.path / DIGEST, MAX_DIGEST_BYTES)


def _info(rank: int, folder: Path) -> ProfileInfo:
    facts = read_json(folder / FACTS, 2**20)
    names = {one.name for one in entries(folder)}
    problems = facts.get("problems")
    return ProfileInfo(
        rank=rank,
        name=folder.name,
        path=folder,
        first_step=int_in(facts["first_step"]),
        last_step=int_in(facts["last_step"]),
        start_ns=int_in(facts["start_ns"]),
        duration_ns=int_in(facts["duration_ns"]),
        problems=tuple(str(one)[:MAX_TEXT_CHARS] for one in (problems if isinstance(problems, list) else []))[
            :_MAX_PROBLEMS
        ],
        ready=DIGEST in names,
        files=tuple(sorted(name for name in names if name.startswith(("trace.", "python.")))),
    )
