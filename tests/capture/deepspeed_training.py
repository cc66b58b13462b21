"""Trainings of two processes with DeepSpeed, started by `torchrun`; every scenario leaves a run."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import deepspeed
import torch
from deepspeed.accelerator import get_accelerator
from deepspeed.utils import safe_get_full_grad
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import tdbg_lab as tdbg

STEPS, MICROS, SAVE_EVERY = 6, 2, 2
MAX_NORM = 0.05
"""Every gradient is clipped to it."""


class Net(nn.Module):
    """Layers of sizes that two processes cannot halve."""

    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(7, 15), nn.ReLU(), nn.Linear(15, 3)

    def forward(self, x):
        return self.last(self.act(self.first(x)))


def data(rank, number):
    generator = torch.Generator().manual_seed(1000 * rank + number)
    return torch.randn(6, 7, generator=generator), torch.randint(0, 3, (6,), generator=generator)


def configuration(stage, **more):
    settings = {
        "train_micro_batch_size_per_gpu": 6,
        "gradient_accumulation_steps": MICROS,
        "gradient_clipping": MAX_NORM,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}},
        "zero_optimization": {
            "stage": stage,
            "stage3_param_persistence_threshold": 0,
        },  # else small ones stay
        "steps_per_print": 10**9,
        **more,
    }
    return {name: value for name, value in settings.items() if value is not None}


def fresh(stage, **more):
    torch.manual_seed(0)
    net = Net()
    return deepspeed.initialize(
        model=net, model_parameters=net.parameters(), config=configuration(stage, **more)
    )[0]


def attach(root, name, *given, **more):
    return tdbg.attach(*given, store=root / name, save_every=SAVE_EVERY, profiler=False, strict=True, **more)


def steps(engine, criterion, rank, look=None):
    """Train, and evaluate once."""
    dtype = next(engine.module.parameters()).dtype
    for step in range(STEPS):
        for micro in range(MICROS):
            x, y = data(rank, step * MICROS + micro)
            engine.backward(criterion(engine(x.to(dtype)).float(), y))
            if look is not None and micro == MICROS - 1 and step % SAVE_EVERY == 0:
                look(step)
            engine.step()
        if look is not None:
            look(None)
    engine.eval()
    with torch.no_grad():
        x, y = data(rank, 10_000)
        return float(criterion(engine(x.to(dtype)).float(), y))


def weights(engine):
    parameters = list(engine.module.parameters())
    divided = hasattr(parameters[0], "ds_id")
    with deepspeed.zero.GatheredParameters(parameters) if divided else nullcontext():
        return {name: value.detach().clone() for name, value in engine.module.named_parameters()}


def numbers(value):
    value = value.double()
    return [value.numel(), float(value.norm()), float(value.min()), float(value.max())]


def one_stage(root, name, rank, *, stage, given, **more):
    """What DeepSpeed says without us, and whether it trains to the same with us."""
    engine, criterion = fresh(stage, **more), nn.CrossEntropyLoss()
    told = {"gradients": {}, "weights": {}, "norms": [], "rates": [engine.get_lr()[0]]}

    def look(step):
        if step is None:
            told["norms"].append(float(engine.get_global_grad_norm() or 0.0))
            told["rates"].append(engine.get_lr()[0])
            return
        gradients = {key: safe_get_full_grad(value) for key, value in engine.module.named_parameters()}
        told["gradients"][step] = {key: numbers(value) for key, value in gradients.items()}
        told["weights"][step] = {key: numbers(value) for key, value in weights(engine).items()}

    told["eval"] = steps(engine, criterion, rank, look)
    bare = weights(engine)
    engine, criterion = fresh(stage, **more), nn.CrossEntropyLoss()
    settings = {"optimizer": engine.optimizer} if given else {}
    with attach(root, name, engine, loss=criterion, ranks="all", **settings) as handle:
        steps(engine, criterion, rank)
        told["problems"] = handle.problems
    told["same"] = all(torch.equal(value, bare[key]) for key, value in weights(engine).items())
    return told


def zero0(root, rank):
    return one_stage(root, "zero0", rank, stage=0, given=True)


def zero1(root, rank):
    return one_stage(root, "zero1", rank, stage=1, given=True)


def zero2(root, rank):
    return one_stage(root, "zero2", rank, stage=2, given=False)


def zero3(root, rank):
    return one_stage(root, "zero3", rank, stage=3, given=True)


def bfloat16(root, rank):
    return one_stage(root, "bfloat16", rank, stage=1, given=True, bf16={"enabled": True})


def float16(root, rank):
    """A scale of the loss that is too large at first."""
    type(get_accelerator()).is_fp16_supported = lambda _self: True  # by this PyTorch it is, on any processor
    scaled = {"enabled": True, "initial_scale_power": 24, "hysteresis": 1}
    engine = fresh(1, fp16=scaled)
    with attach(root, "float16", engine, ranks="all"):
        steps(engine, nn.CrossEntropyLoss(), rank)
    return {"skipped": engine.skipped_steps, "scale": engine.optimizer.loss_scale}


def settings(root, rank):
    """A learning rate that is asked for, and clipping that is DeepSpeed's own matter."""
    engine, criterion = fresh(2, scheduler=None), nn.CrossEntropyLoss()
    with attach(root, "settings", engine, optimizer=engine.optimizer, ranks="all") as handle:
        for wanted in ("lr=0.25", "clip_norm=1"):
            if rank == 0:
                handle.run.request_setting(wanted, by="test")
            handle._engine.control._next_s = 0.0
            engine.train()
            steps(engine, criterion, rank)
    return {"rate": engine.get_lr()[0]}


def taken_over(root, rank):
    """Capture begins before DeepSpeed takes the optimizer over, which has two groups."""
    torch.manual_seed(0)
    net, criterion = Net(), nn.CrossEntropyLoss()
    groups = [{"params": net.first.parameters()}, {"params": net.last.parameters(), "lr": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=0.25)
    with attach(root, "taken_over", net, optimizer=optimizer, loss=criterion, ranks="all"):
        settings = configuration(1, scheduler=None, zero_allow_untested_optimizer=True)
        engine = deepspeed.initialize(model=net, optimizer=optimizer, config=settings)[0]
        steps(engine, criterion, rank)


def pipeline(root, rank):
    """Each process has layers of its own."""
    from deepspeed.pipe import PipelineModule

    torch.manual_seed(0)
    layers = [nn.Linear(7, 15), nn.ReLU(), nn.Linear(15, 3)]
    net = PipelineModule(layers=layers, loss_fn=nn.CrossEntropyLoss(), num_stages=2)
    engine = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=configuration(0))[0]
    with attach(root, "pipeline", engine, optimizer=engine.optimizer, ranks="all"):
        batches = (data(0, number) for number in count())
        return {"losses": [float(engine.train_batch(batches)) for _ in range(STEPS)]}


def trainer(root, _rank):
    """The trainer of transformers has Accelerate put an optimizer around DeepSpeed's."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
        )
    )
    rows = [{"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(i % 2)} for i in range(32)]
    arguments = TrainingArguments(
        output_dir=str(root / "output"),
        max_steps=4,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        deepspeed={
            "train_micro_batch_size_per_gpu": "auto",
            "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
            "zero_force_ds_cpu_optimizer": False,
        },
    )
    watch = tdbg.TransformersCallback(store=root / "trainer", save_every=2, profiler=False, ranks="all")
    with watch:
        done = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[watch])
        done.train()
    return {"log": [one for one in done.state.log_history if "grad_norm" in one]}


SCENARIOS = (zero0, zero1, zero2, zero3, bfloat16, float16, settings, taken_over, trainer, pipeline)


def main():
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # would be compiled; gloo will do
    deepspeed.init_distributed("gloo")
    rank = deepspeed.comm.get_rank()
    told = {one.__name__: one(root, rank) for one in SCENARIOS}
    (root / f"told-{rank}.json").write_text(json.dumps(told))
    deepspeed.comm.destroy_process_group()


if __name__ == "__main__":
    main()
