"""`attach`: the one way into a training loop."""

from __future__ import annotations

import logging
import os
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture import companions
from tdbg_lab.capture.engine import Engine
from tdbg_lab.capture.handle import Handle
from tdbg_lab.capture.registry import open_handles
from tdbg_lab.config import CaptureConfig
from tdbg_lab.errors import CaptureError
from tdbg_lab.store import RankWriter, create_run, join_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tdbg_lab.store import RunFolder

__all__ = ["attach"]

_log = logging.getLogger("tdbg_lab")


def attach(
    model: Any = None,
    *,
    optimizer: Any = None,
    loss: Any = None,
    store: str | Path | None = None,
    save_every: int | None = None,
    collections: Any = None,
    rules: Any = None,
    config: CaptureConfig | Mapping[str, Any] | str | Path | None = None,
    name: str | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    notes: str = "",
    if_exists: str = "new",
    sample_rows: int | None = None,
    profiler: bool = True,
    strict: bool = False,
    on_stop: Callable[[str], object] | None = None,
) -> Handle:
    """Capture what happens inside a model while it trains. Nothing of it ever raises into training.

    Parameters
    ----------
    model
        A module, or a mapping or list of them. None captures only what is recorded by hand.
    optimizer
        An optimizer, or several. None: the first optimizer that moves the model's parameters is
        found when it steps.
    loss
        Loss modules that are not part of the model.
    store
        Run directory; by default ``runs/<date and time>``.
    save_every
        Distance of the saved steps, 10 unless `config` says otherwise.
    collections
        What to capture; see `tdbg_lab.config.CaptureConfig.build`.
    rules
        ``"default"``, or a list of rule names and rules: checked in a process of their own.
    config
        A configuration, a mapping, or a JSON or YAML file; the arguments here win over it.
    name, hyperparameters, tags, notes
        Kept with the run.
    if_exists
        ``"new"`` makes ``first-2`` beside an existing ``first``, ``"resume"`` continues it,
        ``"error"`` raises.
    sample_rows
        Rows of raw values to keep, where a collection does not say.
    profiler
        Record phases, and sample the machine in a process of its own.
    strict
        Raise our own failures instead of turning off what failed; for tests.
    on_stop
        Called with the reason when a stop is requested, instead of raising `TrainingStopped`.

    Raises
    ------
    ConfigError
        A setting is wrong; the message says which one.
    CaptureError
        The model, loss or optimizer cannot be attached to.
    StoreError
        The run directory cannot be made.
    """
    settings = CaptureConfig.build(
        config, save_every=save_every, collections=collections, sample_rows=sample_rows
    )
    given = _described(model, optimizer, loss)
    request, path = _requested(store)
    _end_earlier(request)
    folder = _folder(
        path,
        name=name,
        hyperparameters=hyperparameters,
        tags=tags,
        notes=notes,
        if_exists=if_exists,
        capture={**settings.dump(), "aliases": _aliases(given)},
        framework="pytorch" if any(given) else "",
    )
    engine = Engine(
        folder,
        RankWriter(folder.path, _rank()),
        settings,
        strict=strict,
        phases=profiler,
        first_step=_first_step(folder.path) if if_exists == "resume" else 0,
        chief=_rank() == 0,
    )
    handle = Handle(engine, request=request, on_stop=on_stop)
    try:
        _hang(handle, engine, given)
    except BaseException as error:
        handle.__exit__(type(error), error, None)
        raise
    _accompany(engine, rules, profiler=profiler)
    return handle


def _described(model: Any, optimizer: Any, loss: Any) -> tuple[dict[str, Any], ...]:
    if model is None and optimizer is None and loss is None:
        return ()
    if "torch" not in sys.modules:
        raise CaptureError(
            f"model is of type {type(model).__name__}; "
            "expected a PyTorch module, a mapping or a list of them."
        )
    from tdbg_lab.capture.pytorch.session import describe

    return describe(model, optimizer, loss)


def _aliases(given: tuple[dict[str, Any], ...]) -> dict[str, str]:
    if not any(given):
        return {}
    from tdbg_lab.capture.pytorch.session import aliases

    return aliases(given[0])


def _hang(handle: Handle, engine: Engine, given: tuple[dict[str, Any], ...]) -> None:
    if not any(given):
        return
    from tdbg_lab.capture.pytorch.session import TorchSession

    models, optimizers, losses = given
    session = TorchSession(engine, handle, models, optimizers, losses)
    handle.adopt(session)


def _requested(store: str | Path | None) -> tuple[str, Path]:
    """What identifies the request, and the directory."""
    if store is None:
        stamp = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
        return "", Path("runs") / stamp
    path = Path(store).expanduser()
    return str(path.resolve()), path


def _end_earlier(request: str) -> None:
    """Detach the handle of the same request: the cell was run again."""
    for handle in open_handles():
        if request and handle.request == request:
            handle.detach()
            _log.warning(
                "tdbg-lab: the capture into %s was still attached; it is detached now.", handle.run_path
            )


def _rank() -> int:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return int(os.environ.get("RANK", "0") or 0)


def _folder(path: Path, **known: Any) -> RunFolder:
    rank = _rank()
    if rank:
        return join_run(path, rank)
    framework = known["framework"]
    torch = sys.modules.get("torch") if framework else None
    return create_run(
        path,
        **known,
        framework_version=str(torch.__version__) if torch is not None else "",
        world_size=int(os.environ.get("WORLD_SIZE", "1") or 1),
    )


def _first_step(path: Path) -> int:
    """The step to go on with in a run that is resumed."""
    from tdbg_lab.run import open_run

    return open_run(path).last_step + 1


def _start_sampler(path: Path) -> None:
    companions.start_sampler(path, rank=_rank())


def _accompany(engine: Engine, rules: Any, *, profiler: bool) -> None:
    """Start what runs beside training; compile what the first saved step needs."""
    from tdbg_lab.stats import cpu

    threading.Thread(target=cpu.warm_up, name="tdbg-lab warm-up", daemon=True).start()
    path = engine.folder.path
    if profiler:
        engine.guard.run("sampler", _start_sampler, path)
    if engine.chief and rules is not None and rules != "none":
        engine.guard.run("rules", companions.start_rules, path, rules)
