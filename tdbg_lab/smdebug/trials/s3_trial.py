"""A trial in a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError, StoreError
from tdbg_lab.smdebug.trials.record import open_record
from tdbg_lab.smdebug.trials.trial import Trial
from tdbg_lab.smdebug.trials.waiting import Waiting
from tdbg_lab.store.remote import StoreUrl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.store.remote.copying import Copy

__all__ = ["S3Trial"]

_POLL_S = 2.0


class S3Trial(Trial):
    """Reads what a hook saved into a bucket; waits until something is there.

    It reads a local copy (`tdbg_lab.store.remote`), for which it fetches what is new at most every 2 s.

    Parameters
    ----------
    name
        For people.
    bucket_name, prefix_name
        The bucket, and the path in it.
    range_steps, cache
        As for `Trial`; what else the predecessor took is accepted and has no effect.

    Raises
    ------
    ConfigError
        If there can be no such bucket or path.
    StoreError
        If it cannot be read, such as without the right to.
    """

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: Sequence[int | None] | None = None,
        cache: bool = False,
        **_kwargs: Any,
    ) -> None:
        self._url = StoreUrl("s3", bucket_name, prefix_name.strip("/"))
        self._copy = _wait_for(self._url)
        super().__init__(name, open_record(self._copy.path), range_steps=range_steps, cache=cache)

    @property
    def path(self) -> str:
        """Its address."""
        return str(self._url)

    def _fetch(self) -> None:
        try:
            self._copy.pull()
        except StoreError as error:  # what is here stays readable
            self.logger.warning("%s", error)


def _wait_for(url: StoreUrl) -> Copy:
    from tdbg_lab.store.remote.opening import open_mirror

    waiting = Waiting(f"a run at {url}", poll_s=_POLL_S)
    while True:
        try:
            return open_mirror(url)
        except NotFoundError:
            waiting.pause()
