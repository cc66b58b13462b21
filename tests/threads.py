"""A process that may start no more threads, as in a container with a limit of them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def no_more_threads() -> Iterator[None]:
    """Meanwhile starting a thread fails as it does in CPython where the system gives none."""
    with patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
        yield
