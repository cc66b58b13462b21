"""No change to the script: what a program trains is found while it runs, and attached to.

`AutoWatch` waits for the program to import a framework; each framework has a finder of its own.
Nothing is imported for the program, and everything is taken off again at the end.
"""

from __future__ import annotations

from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["AutoWatch"]
