from __future__ import annotations

import gc
import inspect
import json
import os
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path

MODULES = (
    "compiled_loops",
    "cut_off",
    "fitting",
    "hard",
    "labels",
    "loop_facts",
    "loops",
    "settings",
    "smdebug_hook",
    "values",
)


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as compiled:
        prepare(compiled)
        run_all(sys.argv[1:])


def prepare(compiled: str) -> None:
    """Spend little time on compiling: most checks, and both runs of each, train the same small model."""
    import keras

    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(1)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        halves = [tf.config.LogicalDeviceConfiguration()] * 2  # for replicas
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], halves)
    if keras.backend.backend() == "jax":
        import jax

        jax.config.update("jax_compilation_cache_dir", compiled)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def optimize(*, fully: bool) -> None:
    """Compile from now on as users do, or in less time."""
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not fully})
    if keras.backend.backend() == "jax":
        import jax

        jax.config.update("jax_disable_most_optimizations", not fully)


def run_all(only: list[str]) -> None:
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
    optimize(fully=getattr(check, "optimized", False))
    keras.backend.clear_session()
    gc.freeze()  # it collects garbage, and each new model will: what lives on need not be looked at again
    # The process that samples the machine may write a last time while the folder goes.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            check(Path(folder))  # type: ignore[operator]
        except Exception:
            return traceback.format_exc()
    return None


if __name__ == "__main__":
    main()
