"""``tdbg demo``: JupyterLab on the example notebooks."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import click

from tdbg_lab.errors import MissingDependencyError

__all__ = ["command"]

NO_TORCH = (
    'The quickstart trains with PyTorch, which is not installed: pip install "tdbg-lab[torch]" - '
    "or see the panel without it: tdbg demo --synthetic"
)


@click.command("demo")
@click.option(
    "--port", default=8888, show_default=True, type=click.IntRange(1, 65535), help="Port of JupyterLab."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser; JupyterLab prints its address.")
@click.option(
    "--dir",
    "folder",
    default="tdbg-demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the notebooks are copied to; files that are there already stay.",
)
@click.option("--synthetic", is_flag=True, help="Show a made-up live run; needs no PyTorch.")
def command(port: int, folder: Path, *, no_browser: bool, synthetic: bool) -> int:
    """Open JupyterLab on the quickstart."""
    from tdbg_lab.demo.notebooks import copy_examples
    from tdbg_lab.demo.workspace import prepare_workspace

    if not synthetic and importlib.util.find_spec("torch") is None:
        raise MissingDependencyError(NO_TORCH)
    folder = folder.resolve()
    if synthetic:
        folder.mkdir(parents=True, exist_ok=True)
    else:
        copy_examples(folder)
        _warm_up()
    with contextlib.suppress(OSError):  # what JupyterLab cannot keep, it begins with each time
        prepare_workspace()
    click.echo(f"The demo is in {folder}. Press Ctrl+C twice to end it.")
    training = _start_training(folder / "runs" / "synthetic") if synthetic else None
    try:
        return _jupyter(folder, port, browser=not no_browser, notebook=not synthetic)
    finally:
        if training is not None:
            training.terminate()
            training.wait()


def _warm_up() -> None:
    """Compile the kernels meanwhile, so that the first training step finds them ready."""
    code = "from tdbg_lab.stats.cpu import warm_up; warm_up()"
    subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _start_training(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tdbg_lab.demo.synthetic", str(path), "--with", str(os.getpid())]
    )


def _jupyter(folder: Path, port: int, *, browser: bool, notebook: bool) -> int:
    """Run JupyterLab until it ends; its exit code."""
    from tdbg_lab.demo.workspace import WORKSPACE

    page = f"/lab/workspaces/{WORKSPACE}" + ("/tree/quickstart.ipynb" if notebook else "")
    options = [
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.port={port}",
        f"--LabApp.default_url={page}",
        f"--ServerApp.open_browser={browser}",
        "--ServerApp.jpserver_extensions={'tdbg_lab': True}",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--ServerApp.allow_root=True")  # in a container there is nobody else
    jupyter = subprocess.Popen([sys.executable, "-m", "tdbg_lab.demo.lab", str(os.getpid()), *options])
    signal.signal(signal.SIGTERM, lambda *_: jupyter.terminate())
    while True:
        try:
            return jupyter.wait()
        except KeyboardInterrupt:  # JupyterLab got it too, and asks whether to end
            continue
