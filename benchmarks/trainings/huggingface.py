"""`transformers.Trainer` with a small GPT-2."""

from __future__ import annotations

import contextlib
import io

from trainings.peers import PEERS
from trainings.stopwatch import OURS, WARM_UP, Stopwatch, no_problems


class HuggingFace:
    """A Trainer anew for each block, the same model."""

    def __init__(self, arm, folder):
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
        from transformers.utils import logging

        logging.set_verbosity_error()
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.arm, self.folder = arm, folder
        self.model = GPT2LMHeadModel(
            GPT2Config(n_layer=2, n_head=4, n_embd=128, n_positions=64, vocab_size=256)
        )
        self.rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 256, (64, 64))]
        self.peer = PEERS[arm](self.model, folder) if arm in PEERS else None

    def block(self, steps):
        """Seconds a step, after the warm-up."""
        from transformers import Trainer, TrainingArguments

        arguments = {"per_device_train_batch_size": 8, "max_steps": WARM_UP + steps, "use_cpu": True}
        arguments |= {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 10}
        own = self._own()
        watch = Stopwatch(steps)
        trainer = Trainer(
            self.model,
            TrainingArguments(str(self.folder / "out"), **arguments),
            train_dataset=self.rows,
            callbacks=[*own, watching(watch, self.peer)],
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its logs
            trainer.train()
        for callback in own:
            no_problems(callback.handle)
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm not in OURS:
            return []
        every = OURS[self.arm]
        return [tdbg.TransformersCallback(store=self.folder / "run", save_every=every, profiler=False)]

    def close(self):
        if self.peer is not None:
            self.peer.close()


def watching(watch, peer):
    """A callback that tells of every step."""
    from transformers import TrainerCallback

    class Watching(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if peer is not None:
                peer.step()
            watch.step()

    return Watching()
