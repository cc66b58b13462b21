"""The copy of whatever is at an address: a run of ours, or what SageMaker Debugger wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError
from tdbg_lab.store.remote.foreign import ForeignMirror
from tdbg_lab.store.remote.mirror import Mirror

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["open_mirror"]


def open_mirror(url: StoreUrl, options: Mapping[str, Any] | None = None) -> Mirror | ForeignMirror:
    """The copy of the run at an address, brought up to date once.

    Raises
    ------
    NotFoundError
        If there is none.
    ConfigError
        If an option is wrong.
    StoreError
        If it cannot be read, or the copy not be written.
    """
    own = Mirror(url, options)
    try:
        own.pull()
    except NotFoundError:
        foreign = ForeignMirror(url, options)
        foreign.pull()
        return foreign
    return own
