"""`transformers.Trainer` with a small GPT-2."""

from __future__ import annotations

import contextlib
import io

from trainings.stopwatch import WARM_UP
from trainings.trainer import Trainer as Training


class HuggingFace(Training):
    callback = "TransformersCallback"

    def __init__(self, arm, folder):
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
        from transformers.utils import logging

        logging.set_verbosity_error()
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = GPT2LMHeadModel(
            GPT2Config(n_layer=2, n_head=4, n_embd=128, n_positions=64, vocab_size=256)
        )
        self.rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 256, (64, 64))]
        super().__init__(arm, folder, self.model)

    def fit(self, steps, own, watch):
        from transformers import Trainer, TrainingArguments

        arguments = {"per_device_train_batch_size": 8, "max_steps": WARM_UP + steps, "use_cpu": True}
        arguments |= {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 10}
        trainer = Trainer(
            self.model,
            TrainingArguments(str(self.folder / "out"), **arguments),
            train_dataset=self.rows,
            callbacks=[*own, watching(watch, self.peer)],
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its logs
            trainer.train()


def watching(watch, peer):
    """A callback that tells of every step."""
    from transformers import TrainerCallback

    class Watching(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if peer is not None:
                peer.step()
            watch.step()

    return Watching()
