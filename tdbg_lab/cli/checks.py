"""What ``tdbg doctor`` looks at. A check never raises: what goes wrong is what it found."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Check", "examine"]

REQUIRED = ("jupyterlab", "jupyter-server", "plotly", "anywidget", "ipywidgets", "pyarrow", "numba", "numpy")
OPTIONAL = (("torch", "torch"), ("keras", "keras"), ("xgboost", "xgboost"))
LAB_EXTENSION = "tdbg-lab"


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check."""

    what: str
    state: Literal["ok", "note", "wrong"]
    found: str
    advice: str = ""
    """What to do; empty when all is well."""


def examine() -> list[Check]:
    """Do all checks."""
    checks = (
        _python,
        _packages,
        _frameworks,
        _server_extension,
        _lab_extension,
        _kernel,
        _gpu,
        _gpu_kernels,
        _writable,
        _numba_cache,
    )
    return [_guarded(check) for check in checks]


def _guarded(check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - reported as the finding
        what = check.__name__.strip("_").replace("_", " ")
        return Check(what, "wrong", f"{type(error).__name__}: {error}", "Install tdbg-lab again.")


def _python() -> Check:
    import tdbg_lab

    found = f"Python {platform.python_version()} at {sys.executable}, tdbg-lab {tdbg_lab.__version__}"
    return Check("python", "ok", found)


def _packages() -> Check:
    versions, missing = [], []
    for name in REQUIRED:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(
            "packages", "wrong", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}"
        )
    return Check("packages", "ok", ", ".join(versions))


def _frameworks() -> Check:
    found = [f"{name} {version(name)}" for name, module in OPTIONAL if importlib.util.find_spec(module)]
    if found:
        return Check("frameworks", "ok", ", ".join(found))
    return Check("frameworks", "note", "none", 'To train with PyTorch: pip install "tdbg-lab[torch]"')


def _server_extension() -> Check:
    from jupyter_core.paths import jupyter_config_path
    from jupyter_server.extension.config import ExtensionConfigManager

    from tdbg_lab.server.app import TdbgApp

    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    extensions = manager.get_jpserver_extensions()  # type: ignore[no-untyped-call]
    if extensions.get(TdbgApp.name) is True:
        return Check("server extension", "ok", "on")
    return Check(
        "server extension", "wrong", "off", f"jupyter server extension enable {TdbgApp.name} --sys-prefix"
    )


def _lab_extension() -> Check:
    from jupyter_core.paths import jupyter_path

    folders = [Path(path) / LAB_EXTENSION for path in jupyter_path("labextensions")]
    found = next((folder for folder in folders if (folder / "package.json").is_file()), None)
    if found is None:
        advice = "Install it where JupyterLab runs: pip install --force-reinstall tdbg-lab"
        return Check("lab extension", "wrong", "not installed", advice)
    facts = json.loads((found / "package.json").read_text(encoding="utf-8"))
    if LAB_EXTENSION in _disabled():
        return Check("lab extension", "wrong", "disabled", f"jupyter labextension enable {LAB_EXTENSION}")
    return Check("lab extension", "ok", f"{facts.get('version', '?')} at {found}")


def _disabled() -> set[str]:
    """Names of disabled lab extensions."""
    from jupyter_core.paths import jupyter_config_path
    from jupyter_server.config_manager import BaseJSONConfigManager

    names: set[str] = set()
    for folder in jupyter_config_path():
        manager = BaseJSONConfigManager(config_dir=str(Path(folder) / "labconfig"))
        disabled = manager.get("page_config").get("disabledExtensions", {})
        names |= (
            {name for name, off in disabled.items() if off} if isinstance(disabled, dict) else set(disabled)
        )
    return names


def _kernel() -> Check:
    if importlib.util.find_spec("ipykernel") is None:
        return Check("kernel", "wrong", "no ipykernel", "pip install ipykernel")
    return Check("kernel", "ok", f"ipykernel {version('ipykernel')}")


def _gpu() -> Check:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 - no driver, no library, no permission: no GPU
        return Check(
            "gpu", "note", f"none seen ({type(error).__name__})", "Fine without: everything works on the CPU."
        )
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        names = [pynvml.nvmlDeviceGetName(handle) for handle in handles]
    finally:
        pynvml.nvmlShutdown()
    return Check("gpu", "ok" if names else "note", ", ".join(map(str, names)) or "none")


def _gpu_kernels() -> Check:
    """What a GPU is measured with, which matters where PyTorch trains on one."""
    what = "statistics on a GPU"
    if importlib.util.find_spec("torch") is None or _gpu().state != "ok":
        return Check(what, "ok", "not needed here")
    if importlib.util.find_spec("triton") is None:
        return Check(what, "note", "by PyTorch's operations, which are slower", "pip install triton")
    named = os.environ.get("CC")  # Triton looks for no other then
    names = [named] if named else ["gcc", "clang"]
    compiler = next((found for name in names if (found := shutil.which(name))), None)
    if compiler is None:
        advice = "Install one (gcc or clang), or name it in the variable CC: Triton needs it."
        return Check(what, "note", "by PyTorch's operations, which are slower: no C compiler", advice)
    return Check(what, "ok", f"Triton {version('triton')} with {compiler}")


def _writable() -> Check:
    folder = Path.cwd()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"tdbg")
    except OSError as error:
        advice = "Change to a folder you may write to, or give attach() a store elsewhere."
        return Check("current folder", "wrong", f"{folder} cannot be written: {error.strerror}", advice)
    return Check("current folder", "ok", f"{folder} can be written")


def _numba_cache() -> Check:
    """Whether compiled kernels survive the process: without, each training start compiles again."""
    from numba import njit

    import tdbg_lab

    try:
        kernel = njit(cache=True)(_nothing)
        folder = kernel._cache.cache_path  # noqa: SLF001 - numba tells it nowhere else
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (RuntimeError, OSError) as error:
        place = Path(tdbg_lab.__file__).parent
        advice = f"Make {place} writable or set NUMBA_CACHE_DIR to a folder you may write to."
        return Check("compiled code", "note", f"cannot be kept ({error})", advice)
    return Check("compiled code", "ok", f"kept in {folder}")


def _nothing() -> int:
    return 0
