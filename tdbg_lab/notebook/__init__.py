"""``%tdbg`` magics and inline widgets.

``magics`` (what IPython calls) reads a line with ``arguments`` and does it with ``commands``; ``completion``
offers what ``arguments`` declares. ``showing.show`` opens a ``live.LiveView``: a ``figure_widget``
kept up to date by a thread (``pace``), its ``controls``, and a ``still`` for the saved notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.lazy import on_demand
from tdbg_lab.notebook.showing import show

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["LiveView", "load_ipython_extension", "show", "unload_ipython_extension"]

__getattr__ = on_demand(__name__, {"LiveView": "tdbg_lab.notebook.live"})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics and their completion."""
    from tdbg_lab.notebook.completion import matcher_for
    from tdbg_lab.notebook.magics import TdbgMagics

    unload_ipython_extension(shell)
    shell.register_magics(TdbgMagics)
    shell.Completer.custom_matchers.append(matcher_for(shell.user_ns))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics and their completion."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("tdbg", None)
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if getattr(each, "matcher_identifier", "") != "tdbg_lab"]
