"""For all tests: how hypothesis searches, that Ctrl-C is heard, and what need not be collected."""

import gc
import signal

from hypothesis import settings

# The same examples each time, unless asked to look further: a failure that no change caused says nothing
# about the change. `--hypothesis-profile=search` looks at fresh examples; what it finds becomes an @example.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("repeatable")

# What a shell starts in the background ignores Ctrl-C, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What was made by importing stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.get_freeze_count = lambda: 0  # no optimizer of a test is among it
