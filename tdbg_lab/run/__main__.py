"""``python -m tdbg_lab.run script.py`` is ``tdbg run script.py``."""

import sys

from tdbg_lab.cli import main

if __name__ == "__main__":
    main(["run", *sys.argv[1:]])
