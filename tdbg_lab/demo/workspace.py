"""The workspace of JupyterLab that the demo opens: with the side bar on the first time."""

from __future__ import annotations

import json
from pathlib import Path

from jupyterlab.commands import get_workspaces_dir
from jupyterlab_server.workspaces_handler import WORKSPACE_EXTENSION, WorkspacesManager, slugify

__all__ = ["WORKSPACE", "prepare_workspace"]

WORKSPACE = "tdbg-demo"
"""JupyterLab keeps what was open by workspace: the demo begins tidy, and leaves the user's own alone."""
_SIDEBAR = "tdbg-lab-sidebar"
"""The name under which the front end restores it."""


def prepare_workspace(folder: Path | None = None) -> bool:
    """Make the workspace, unless there is one from an earlier time; whether it was made.

    Parameters
    ----------
    folder
        Where JupyterLab keeps workspaces; None: where it says.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    folder = Path(folder or get_workspaces_dir())
    if (folder / f"{slugify(WORKSPACE)}{WORKSPACE_EXTENSION}").exists():
        return False
    left = {"collapsed": False, "visible": True, "current": _SIDEBAR, "widgets": [_SIDEBAR]}
    layout = {"data": {"layout-restorer:data": {"left": left}}, "metadata": {"id": WORKSPACE}}
    WorkspacesManager(str(folder)).save(WORKSPACE, json.dumps(layout))
    return True
