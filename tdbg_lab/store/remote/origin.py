"""What a `tdbg_lab.run.Run` asks of the object store that its directory is a copy of."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Origin"]


class Origin(Protocol):
    """Keeps a run directory like a run that lies elsewhere."""

    @property
    def problems(self) -> list[str]:
        """What of the run is not in the directory, and why."""

    def pull(self) -> bool:
        """Fetch what is new, when it is time; raises `StoreError` or `NotFoundError`."""

    def send_request(self, identity: str) -> None:
        """Send a request that was written into ``control/``; raises `StoreError`."""

    def send_edits(self) -> None:
        """Send the edits that were written; raises `StoreError`."""
