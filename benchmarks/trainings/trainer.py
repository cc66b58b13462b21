"""What the trainers of frameworks share: a callback of ours or a peer, and the clocks of a block."""

from __future__ import annotations

from trainings.peers import PEERS
from trainings.stopwatch import OURS, Stopwatch, no_problems


class Trainer:
    """A framework's trainer anew for each block, the same model.

    Subclasses name our `callback` for it and `fit` for some steps.
    """

    callback = ""

    def __init__(self, arm, folder, model):
        self.arm, self.folder = arm, folder
        self.peer = PEERS[arm](model, folder) if arm in PEERS else None

    def block(self, steps):
        """Seconds a step, after the warm-up."""
        own = self._own()
        watch = Stopwatch(steps)
        self.fit(steps, own, watch)
        for callback in own:
            no_problems(callback.handle)
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm not in OURS:
            return []
        callback = getattr(tdbg, self.callback)
        return [callback(store=self.folder / "run", save_every=OURS[self.arm], profiler=False)]

    def close(self):
        if self.peer is not None:
            self.peer.close()
