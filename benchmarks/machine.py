"""The machine that a figure was measured on, and how a report says so."""

from __future__ import annotations

import ctypes
import json
import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""Of ``mallopt``, by malloc.h of the GNU C library."""
_TOLD = {"cpu", "cores", "python", "load_average"}


def machine(*packages):
    """Processor, cores, Python, versions of packages, and the load average of this moment."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
        "load_average": os.getloadavg()[0],
    }


def _processor():
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def keep_memory():
    """Have the C library keep what is freed, for all that follows; nothing where it is not GNU's.

    It gives memory back to the system and asks for it again in every step, or in none, depending on where
    blocks happen to lie: thousands of page faults, that no arm is to blame for.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def described(facts):
    """One line on the machine."""
    versions = [f"{name} {facts[name]}" for name in facts if name not in _TOLD]
    return ", ".join([facts["cpu"], f"{facts['cores']} cores", f"Python {facts['python']}", *versions]) + "."


def loads(result):
    """One sentence on what else the machine did, of a result that is being published."""
    return (
        f"Load average {result['machine']['load_average']:.1f} at the start, "
        f"{result['load_after']:.1f} at the end."
    )


def table(head, rows):
    """Lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def publish(result, out, as_markdown):
    """Write a result as ``out.json`` and, in words, which are returned, as ``out.md``."""
    result["load_after"] = os.getloadavg()[0]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    text = as_markdown(result)
    out.with_suffix(".md").write_text(text)
    return text
