"""Settings that are changed while ``fit`` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from checks.training import callback, data, plain

if TYPE_CHECKING:
    from pathlib import Path

    from tdbg_lab.capture.keras import KerasCallback
    from tdbg_lab.run import Run


class _Ask(keras.callbacks.Callback):
    """Asks for settings before the batches of their numbers; each step looks for requests."""

    def __init__(self, own: KerasCallback, wanted: dict[int, str]) -> None:
        super().__init__()
        self._own = own
        self._wanted = wanted

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        handle = self._own.handle
        handle._engine.control._next_s = 0.0
        if batch in self._wanted:
            handle.run.request_setting(self._wanted[batch], by="test")


def _trained(
    folder: Path, wanted: dict[int, str], rate: Any = 0.1, **options: Any
) -> tuple[Run, keras.Model]:
    x, y = data()
    model = plain()
    model.compile(keras.optimizers.SGD(rate, **options), "mse")
    own = callback(folder, save_every=1)
    model.fit(x, y, batch_size=16, verbose=0, shuffle=False, callbacks=[own, _Ask(own, wanted)])
    return own.handle.run, model


def check_learning_rate_is_changed_while_fit_runs(folder: Path) -> None:
    run, model = _trained(folder, {1: "lr*=0.1"})
    run.refresh()
    (record,) = run.setting_changes()
    if keras.backend.backend() == "jax":
        assert record.state == "refused"
        assert "On JAX" in record.answer
        return
    assert (record.state, record.step) == ("done", 2)
    np.testing.assert_allclose(run.scalars("optimizer/lr/0").values, [0.1, 0.1, 0.01, 0.01, 0.01], rtol=1e-6)
    np.testing.assert_allclose(float(model.optimizer.learning_rate), 0.01, rtol=1e-6)


def check_clipping_is_changed_while_fit_runs(folder: Path) -> None:
    run, model = _trained(folder, {1: "clip_norm=1e-6"})
    plain_run, _ = _trained(folder / "plain", {})
    assert run.setting_changes()[0].state == "done"
    run.refresh()
    plain_run.refresh()
    names = [key.name for key in run.tensors(kind="weight")]
    moved = [np.abs(np.diff(run.stats([name], ["l2"])["l2"].to_numpy())) for name in names]
    free = [np.abs(np.diff(plain_run.stats([name], ["l2"])["l2"].to_numpy())) for name in names]
    assert max(one[-1] for one in moved) < 1e-3 * max(one[-1] for one in free)
    assert model.optimizer.global_clipnorm == 1e-6


def check_rate_of_a_schedule_is_refused(folder: Path) -> None:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    run, _ = _trained(folder, {1: "lr=0.01"}, schedule)
    (record,) = run.setting_changes()
    assert record.state == "refused"
    assert "ExponentialDecay" in record.answer or "On JAX" in record.answer
