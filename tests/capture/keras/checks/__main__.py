from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path

MODULES = ("fitting", "loops", "settings", "values")


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    only = sys.argv[1:]
    results: dict[str, str | None] = {}
    for module in MODULES:
        for name, check in inspect.getmembers(import_module(f"checks.{module}"), inspect.isfunction):
            if name.startswith("check_") and (not only or name in only):
                results[name] = run(check)
    sys.stdout.write("\n" + json.dumps(results) + "\n")


def run(check: object) -> str | None:
    import keras

    only = getattr(check, "backends", None)
    if only is not None and keras.backend.backend() not in only:
        return "skipped"
    keras.backend.clear_session()
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(Path(folder))  # type: ignore[operator]
        except Exception:
            return traceback.format_exc()
    return None


if __name__ == "__main__":
    main()
