"""JupyterLab that ends with the demo: ``python -m tdbg_lab.demo.lab PID [OPTION]...``."""

from __future__ import annotations

import sys

from jupyterlab.labapp import LabApp

from tdbg_lab.demo.tether import end_with

__all__ = ["main"]


def main() -> None:
    """Run JupyterLab with the options until it ends, or the process PID does."""
    pid, *options = sys.argv[1:]
    end_with(int(pid))
    LabApp.launch_instance(options)


if __name__ == "__main__":
    main()
