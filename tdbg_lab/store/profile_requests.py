"""What became of requests to profile: asked for, being recorded, written, ready to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tdbg_lab.store.control import requests
from tdbg_lab.store.layout import entries, list_ranks, subfolder
from tdbg_lab.store.profiles import FACTS, PROFILE_FOLDER, PROFILES, list_profiles

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.store.control import Request

__all__ = ["ProfileRequest", "ProfileState", "list_profile_requests"]

ProfileState = Literal["requested", "recording", "saving", "ready", "refused"]
_KIND: Final = "profile"
_MOST: Final = 16


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """One request to profile."""

    id: str
    state: ProfileState
    """``requested``: no step of it has begun; ``saving``: recorded, the views are not ready yet."""
    answer: str
    """What the training process said; ``""`` before."""
    by: str
    created_ns: int
    profile: str
    """Name of the profile's folder; ``""`` before it is recorded."""


def list_profile_requests(run_path: Path) -> list[ProfileRequest]:
    """The last requests, oldest first."""
    asked = [one for one in requests(run_path) if one.kind == _KIND][-_MOST:]
    if not asked:
        return []
    ready = {one.name for one in list_profiles(run_path) if one.ready}
    begun = _is_recording(run_path)
    first = next((one.id for one in asked if one.state == "pending"), "")
    return [_state(one, ready, recording=begun and one.id == first) for one in asked]


def _state(request: Request, ready: set[str], *, recording: bool) -> ProfileRequest:
    name = str(request.result.get("profile", ""))[:200]
    state: ProfileState
    if request.state == "pending":
        state = "recording" if recording else "requested"
    elif request.state == "refused":
        state = "refused"
    else:
        state = "ready" if name in ready or not name else "saving"
    return ProfileRequest(request.id, state, request.answer or "", request.by, request.created_ns, name)


def _is_recording(run_path: Path) -> bool:
    """Whether there is a profile that was begun and is not written yet."""
    for _, directory in list_ranks(run_path):
        root = subfolder(directory, PROFILES)
        for entry in entries(root) if root is not None else ():
            folder = subfolder(root, entry.name) if root and PROFILE_FOLDER.fullmatch(entry.name) else None
            if folder is not None and FACTS not in {one.name for one in entries(folder)}:
                return True
    return False
