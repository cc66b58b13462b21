"""``python -m tdbg_lab`` is the ``tdbg`` command."""

from __future__ import annotations

from tdbg_lab.cli import main

if __name__ == "__main__":
    main()
