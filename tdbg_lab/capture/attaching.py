"""`attach`: the one way into a training loop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

from tdbg_lab.capture.boosting import CALLBACKS
from tdbg_lab.capture.companions import check_rules
from tdbg_lab.capture.given import check_given
from tdbg_lab.capture.of_keras import KERAS_2, is_layer, is_loss, is_of_keras_2, trained_by_pytorch
from tdbg_lab.capture.opening import RunFacts, accompany, open_handle
from tdbg_lab.capture.switch import is_off
from tdbg_lab.capture.things import each
from tdbg_lab.config import CaptureConfig
from tdbg_lab.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.capture.opening import IfExists
    from tdbg_lab.capture.ranks import Ranks
    from tdbg_lab.capture.stopping import StopReason

__all__ = ["attach"]


def attach(
    model: Any = None,
    *,
    optimizer: Any = None,
    loss: Any = None,
    store: str | Path | None = None,
    save_every: int | Literal["auto"] | None = None,
    collections: Any = None,
    rules: Any = None,
    actions: Any = (),
    config: CaptureConfig | Mapping[str, Any] | str | Path | None = None,
    name: str | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    notes: str = "",
    if_exists: IfExists = "new",
    first_step: int = 0,
    sample_rows: int | None = None,
    profiler: bool = True,
    profile_steps: tuple[int, int] | None = None,
    sample_interval_s: float | None = None,
    ranks: Ranks | None = None,
    strict: bool = False,
    checkpoint: Callable[[StopReason], object] | None = None,
    on_stop: Callable[[StopReason], object] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Handle:
    """Capture what happens inside a model while it trains. Nothing of it ever raises into training.

    Parameters
    ----------
    model
        A PyTorch module or Keras model, or a mapping or list of them. None captures only what is
        recorded by hand.
    optimizer
        An optimizer, or several. None: the first optimizer that moves the model's parameters is
        found when it steps.
    loss
        Loss modules that are not part of the model. Where none is seen, as with losses that functions
        compute, what ``backward`` is called on is recorded as ``loss/objective``.
    store
        Run directory; by default ``runs/<date and time>``. Or a place on an object store:
        ``s3://bucket/path``, ``gs://bucket/path``, ``az://container/path``.
    save_every
        Distance of the saved steps, 10 unless `config` says otherwise. ``"auto"`` saves as often as takes
        at most 5 % of the time, or what `config` says as ``budget``.
    collections
        What to capture; see `tdbg_lab.config.CaptureConfig.build`.
    rules
        ``"default"``, or a list of rule names and rules: checked in a process of their own. A mapping, or
        a YAML file with one, changes the default rules: ``{"dead_relu": {"patience": 20}, "overfit": True}``.
    actions
        What to do about findings, whatever the rule: one or several of `tdbg_lab.actions`. Rules may
        have actions of their own besides.
    config
        A configuration, a mapping, or a JSON or YAML file; the arguments here win over it. A
        configuration of SageMaker Debugger's hook or profiler is taken as it is.
    name, hyperparameters, tags, notes
        Kept with the run.
    if_exists
        ``"new"`` makes ``first-2`` beside an existing ``first``, ``"resume"`` continues it,
        ``"error"`` raises.
    first_step
        Number of the first step, where training goes on from a checkpoint. A run that is resumed goes on
        after its own last step where this is 0; else steps from here on that it has already are made
        anew: those of the attempt that was cut off stay in the files and are shown no more.
    sample_rows
        Rows of raw values to keep, where a collection does not say.
    profiler
        Record phases, and sample the machine in a process of its own.
    profile_steps
        Profile operators and Python functions of these steps, as in ``range``: ``(100, 105)`` is five
        steps from step 100 on. `Handle.profile` does it at any time.
    sample_interval_s
        Time between two samples of the machine, 0.1 to 60 s; 0.5 unless `config` says otherwise.
    ranks
        Which processes of a distributed training write, each into a directory of its own: ``"all"``
        (the default), ``"first"`` or a list of ranks. Call `attach` on all of them all the same: a
        stop then ends all after the same step.
    strict
        Raise our own failures instead of turning off what failed; for tests.
    checkpoint
        Called at the end of a step when a stop was requested, before anything else: save the model
        there. It is given the reason, a `str` with the attributes ``step``, ``by`` and ``finding``. What
        it raises is told, and the stop goes on.
    on_stop
        Called with the same reason instead of raising `TrainingStopped`: training goes on when it
        returns.
    storage_options
        Credentials, region, endpoint of an object store; see `tdbg_lab.store.remote.options`.

    Raises
    ------
    ConfigError
        A setting is wrong; the message says which one.
    NotFoundError
        There is no rule of a name that was given.
    CaptureError
        The model, loss or optimizer cannot be attached to; or another rank did not make the run.
    ConflictError
        There is such a run already, and `if_exists` is ``"error"``.
    StoreError
        The run directory cannot be made, or an object store refuses it.
    MissingDependencyError
        An object store is asked for and obstore is not installed.

    Notes
    -----
    With ``TDBG_DISABLED=1`` in the environment nothing of this happens: the handle takes every call
    and does nothing.
    """
    if is_off():
        return open_handle(store, CaptureConfig(), RunFacts())[0]
    settings = CaptureConfig.build(
        config,
        save_every=save_every,
        collections=collections,
        sample_rows=sample_rows,
        profile_steps=profile_steps,
        sample_interval_s=sample_interval_s,
    )
    check_rules(rules)
    check_given(
        {
            "store": store,
            "name": name,
            "hyperparameters": hyperparameters,
            "tags": tags,
            "notes": notes,
            "if_exists": if_exists,
            "first_step": first_step,
            "actions": actions,
        }
    )
    if is_layer(model) and not trained_by_pytorch(model, optimizer):
        from tdbg_lab.capture.keras.attaching import attach_keras

        return attach_keras(
            model,
            optimizer,
            store=store,
            settings=settings,
            known={"name": name, "tags": tags, "notes": notes},
            given=hyperparameters,
            rules=rules,
            actions=actions,
            profiler=profiler,
            if_exists=if_exists,
            first_step=first_step,
            strict=strict,
            checkpoint=checkpoint,
            on_stop=on_stop,
            storage_options=storage_options,
        )
    if is_layer(model) and is_loss(loss):
        loss = None  # it is seen by what backward is called on
    given = _described(model, optimizer, loss)
    facts = RunFacts(
        name=name,
        hyperparameters=hyperparameters,
        tags=tags,
        notes=notes,
        framework="pytorch" if any(given) else "",
        framework_version=str(sys.modules["torch"].__version__) if any(given) else "",
        capture={"aliases": _aliases(given)},
    )
    handle, engine = open_handle(
        store,
        settings,
        facts,
        ranks=ranks,
        if_exists=if_exists,
        first_step=first_step,
        phases=profiler,
        strict=strict,
        checkpoint=checkpoint,
        on_stop=on_stop,
        storage_options=storage_options,
    )
    try:
        _hang(handle, engine, given)
    except BaseException as error:
        handle.__exit__(type(error), error, None)
        raise
    accompany(engine, rules, actions=actions, profiler=profiler)
    return handle


def _described(model: Any, optimizer: Any, loss: Any) -> tuple[dict[str, Any], ...]:
    if model is None and optimizer is None and loss is None:
        return ()
    callback = CALLBACKS.get(type(model).__module__.partition(".")[0])
    if callback is not None:
        raise CaptureError(
            f"model is of type {type(model).__name__}, which boosts trees; "
            f"give its training callbacks=[tdbg_lab.{callback}()]."
        )
    if is_of_keras_2(model):
        raise CaptureError(f"model is {KERAS_2}.")
    if "torch" not in sys.modules:
        raise CaptureError(
            f"model is of type {type(model).__name__}; "
            "expected a PyTorch module, a mapping or a list of them."
        )
    from tdbg_lab.capture.pytorch.described import describe

    if is_layer(model):
        from tdbg_lab.capture.pytorch.keras_optimizers import as_pytorch

        optimizer = each(optimizer, as_pytorch)
    return describe(model, optimizer, loss)


def _aliases(given: tuple[dict[str, Any], ...]) -> dict[str, str]:
    if not any(given):
        return {}
    from tdbg_lab.capture.pytorch.described import aliases

    return aliases(given[0])


def _hang(handle: Handle, engine: Engine, given: tuple[dict[str, Any], ...]) -> None:
    if not any(given):
        engine.between = "step"  # what its loop does is not seen: it need not wait for data
        return
    from tdbg_lab.capture.pytorch.session import TorchSession

    models, optimizers, losses = given
    session = TorchSession(engine, handle, models, optimizers, losses)
    handle.adopt(session)
