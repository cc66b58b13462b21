"""A JupyterLab for the browser tests: no token, a folder of its own, everything else as a user has it."""

import os
from pathlib import Path

from jupyterlab.galata import configure_jupyter_server

configure_jupyter_server(c)  # noqa: F821 - Jupyter provides `c`

WORK = Path(__file__).parent / "work"
WORK.mkdir(exist_ok=True)

c.ServerApp.root_dir = str(WORK)  # noqa: F821
c.ServerApp.allow_root = True  # noqa: F821 - CI containers run as root
c.ServerApp.port = int(os.environ.get("TDBG_UI_PORT", "8898"))  # noqa: F821
c.ServerApp.port_retries = 0  # noqa: F821
c.LabApp.collaborative = False  # noqa: F821
