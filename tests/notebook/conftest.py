from __future__ import annotations

import atexit

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell

from tdbg_lab.testing.fake import FakeTraining


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A real IPython shell in an empty directory, with the extension loaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setattr(HistoryManager, "enabled", False)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tdbg_lab")
    yield shell
    shell.run_line_magic("unload_ext", "tdbg_lab")
    InteractiveShell.clear_instance()
    # Each shell would collect garbage once more when the process ends: minutes, for all of them.
    atexit.unregister(shell.atexit_operations)


@pytest.fixture
def complete(shell):
    """Texts that Tab offers at the end of a line."""

    def offered(line):
        with provisionalcompleter():
            return [each.text for each in shell.Completer.completions(line, len(line))]

    return offered


@pytest.fixture
def training(tmp_path):
    """A run that goes on: `training.step()` writes the next step."""
    training = FakeTraining(tmp_path / "runs" / "fake")
    for _ in range(12):
        training.step()
    yield training
    training.end("finished")
