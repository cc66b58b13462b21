"""Make what views draw of a profile's files: ``python -m tdbg_lab.profiler.digest FOLDER``.

A process of its own, so that training goes on meanwhile. It also packs the trace.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.profiler.call_tree import OWN, CallTree, is_own
from tdbg_lab.profiler.functions import CALLS, SAMPLES
from tdbg_lab.profiler.operators import TRACE
from tdbg_lab.profiler.trace_digest import digest_trace
from tdbg_lab.store.file_moves import remove_file, replace_file
from tdbg_lab.store.layout import read_bytes, write_json, write_whole
from tdbg_lab.store.profiles import DIGEST, MAX_DIGEST_BYTES, USE

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["digest_profile", "main"]

log = logging.getLogger("tdbg_lab.profiler")

_MAX_TRACE_BYTES = 128 * 2**20
"""Packed; a larger trace is not kept, what was made of it is."""
_MAX_SAMPLES_BYTES = 128 * 2**20


def main(argv: Sequence[str] | None = None) -> int:
    """Digest the profile in the folder that is named; gives the exit code."""
    if hasattr(os, "nice"):
        os.nice(10)  # training comes first
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        return 2
    digest_profile(Path(arguments[0]))
    return 0


def digest_profile(folder: Path) -> None:
    """Write `DIGEST` of the files in the folder; whatever is missing or broken is left out and told in it.

    `USE`, which rules read, is there when `DIGEST` is.

    Raises
    ------
    OSError, StoreError
        They cannot be written.
    """
    digest: dict[str, Any] = {"format": 1, "problems": []}
    if (folder / TRACE).is_file():
        digest |= digest_trace(folder / TRACE)
        write_json(folder / USE, digest.pop("use"))
        digest["problems"] += _pack(folder / TRACE)
    trees = digest.setdefault("trees", {})
    for name, take in ((SAMPLES, _samples), (CALLS, _calls)):
        if (folder / name).is_file():
            try:
                take(folder / name, digest, trees)
            except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                digest["problems"].append(f"{name} cannot be read: {error}"[:300])
    text = json.dumps(digest, allow_nan=False)
    if len(text) > MAX_DIGEST_BYTES:
        trees.clear()
        digest["problems"].append("the call trees are too large to be drawn")
        text = json.dumps(digest, allow_nan=False)
    write_whole(folder / DIGEST, text.encode())


def _pack(trace: Path) -> list[str]:
    """Pack the trace; gives what went wrong."""
    packed = trace.with_name(trace.name + ".gz")
    partial = trace.with_name(f".{trace.name}.gz.tmp")
    with trace.open("rb") as plain, gzip.open(partial, "wb", compresslevel=5) as file:
        shutil.copyfileobj(plain, file, 2**20)
    size = partial.stat().st_size
    remove_file(trace)
    if size > _MAX_TRACE_BYTES:
        partial.unlink()
        return [f"the trace of {size / 2**20:.0f} MiB was not kept: profile fewer steps"]
    replace_file(partial, packed)
    return []


def _samples(path: Path, _digest: dict[str, Any], trees: dict[str, Any]) -> None:
    """The call tree of a speedscope file; times in us."""
    content = json.loads(read_bytes(path, _MAX_SAMPLES_BYTES))
    frames = content["shared"]["frames"]
    tree = CallTree()
    ours: set[int] = set()
    for profile in content["profiles"]:
        scale = 1e6 if profile.get("unit") == "seconds" else 1.0
        stack = [0]
        last = float(profile.get("startValue", 0.0))
        for event in profile["events"]:
            at = float(event["at"])
            tree.add(stack[-1], (at - last) * scale)
            last = at
            if event["type"] == "O":
                frame = frames[event["frame"]]
                if is_own(str(frame.get("file") or "")):
                    stack.append(stack[-1] if stack[-1] in ours else tree.child(stack[-1], OWN))
                    ours.add(stack[-1])
                else:
                    stack.append(stack[-1] if stack[-1] in ours else tree.child(stack[-1], _place(frame)))
            elif len(stack) > 1:
                stack.pop()
    trees["python"] = tree.dump()


def _place(frame: dict[str, Any]) -> str:
    """``train.py(12): step``, as in the traces of torch.profiler."""
    file, line = str(frame.get("file") or ""), frame.get("line")
    short = "/".join(Path(file).parts[-2:])
    return f"{short}({line}): {frame['name']}" if short and line else str(frame["name"])


def _calls(path: Path, digest: dict[str, Any], _trees: dict[str, Any]) -> None:
    rows = json.loads(read_bytes(path, MAX_DIGEST_BYTES))
    digest["functions"] = [
        {
            "name": _place(row)[:200],
            "calls": int(row["calls"]),
            "self_us": round(float(row["self_s"]) * 1e6, 3),
            "total_us": round(float(row["total_s"]) * 1e6, 3),
        }
        for row in rows[:1000]
    ]


if __name__ == "__main__":
    sys.exit(main())
