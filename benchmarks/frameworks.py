"""What capture costs where something else trains: compiled, distributed, Trainer, Keras, XGBoost.

Each case runs in processes of its own. A model for each arm trains in blocks that take turns: bare,
with tdbg-lab saving every step and every 10th, and with each peer that can. The first round warms up
and is left out; clocks run only inside a training, after the first saved step, so that opening a run
and compiling are not in them. The figure is the median of the paired differences over the median bare
step, in process CPU time; wall time beside. The sampler is off: it is a process of its own.

    python benchmarks/frameworks.py                                 # all cases, writes results/
    python benchmarks/frameworks.py --smdebug-python PATH           # adds smdebug, where it runs
    python benchmarks/frameworks.py --quick --cases hf,keras-jax --out /tmp/frameworks
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
OURS = {"tdbg-1": 1, "tdbg-10": 10}
PEERS = {
    "compiled-gpt": ("tensorboard", "wandb"),
    "ddp-2": ("tensorboard", "wandb"),
    "hf-trainer": ("wandb",),
    "keras-torch": ("tensorboard-10",),
    "keras-tensorflow": ("tensorboard-10",),
    "keras-jax": ("tensorboard-10",),
    "xgboost": ("wandb",),
}
SMDEBUG_RUNS = ("compiled-gpt", "ddp-2")
WHAT = {
    "tensorboard": "histograms of weights and gradients, every step",
    "wandb": "`wandb.watch(log='all', log_freq=1)`, offline; XGBoost: its callback",
    "tensorboard-10": "Keras's callback, histograms of the weights every 10th step",
    "smdebug": "weights, gradients and losses, four reductions and two norms, every step",
}
WARM_UP = 11
"""Steps of a block before the clocks start: 0 and 10 are saved in every arm."""


def clocks():
    return np.array([time.process_time(), time.perf_counter()])


class Stopwatch:
    """Runs from the end of the warm-up to the last step of a block."""

    def __init__(self, steps):
        self.steps = steps
        self.done = 0

    def step(self):
        """A step is over."""
        self.done += 1
        if self.done == WARM_UP:
            self._start = clocks()
        elif self.done == WARM_UP + self.steps:
            self.spent = (clocks() - self._start) / self.steps


def no_problems(handle):
    if handle.problems:
        raise RuntimeError(handle.problems)


# -- PyTorch: the same model trains on ----------------------------------------------------------------


class Loop:
    """A small GPT in a loop of one's own; `wrap` compiles or distributes it."""

    def __init__(self, arm, folder, wrap):
        import torch
        from overhead import Gpt

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.net = Gpt(vocabulary=256, width=128, depth=2, length=64)
        self.x, self.y = torch.randint(0, 256, (2, 8, 64))
        self.criterion = torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-4)
        self.after = self.close = lambda: None
        self.chief = int(os.environ.get("RANK", "0")) == 0
        self.model = wrap(self.net)
        if arm in OURS:
            self._ours(folder, OURS[arm])
        elif arm != "bare" and self.chief:
            {"tensorboard": self._tensorboard, "wandb": self._wandb, "smdebug": self._smdebug}[arm](folder)

    def _ours(self, folder, every):
        import tdbg_lab as tdbg

        handle = tdbg.attach(
            self.model,
            optimizer=self.optimizer,
            loss=self.criterion,
            store=folder / "run",
            save_every=every,
            profiler=False,
        )
        self.close = lambda: (handle.detach(), no_problems(handle))

    def _tensorboard(self, folder):
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(folder)

        def after():
            for name, value in self.net.named_parameters():
                writer.add_histogram(name, value.detach(), 0)
                writer.add_histogram(f"gradient/{name}", value.grad, 0)

        self.after, self.close = after, writer.close

    def _wandb(self, folder):
        run = wandb_run(folder)
        run.watch(self.net, log="all", log_freq=1)
        self.after, self.close = lambda: run.log({"step": 0}), run.finish

    def _smdebug(self, folder):
        import smdebug.pytorch as smd

        hook = smd.Hook(
            str(folder / "smd"),
            save_config=smd.SaveConfig(save_interval=1),
            include_collections=["weights", "biases", "gradients", "losses"],
            reduction_config=smd.ReductionConfig(
                reductions=["min", "max", "mean", "std"], norms=["l1", "l2"]
            ),
        )
        hook.register_module(self.net)
        hook.register_loss(self.criterion)
        self.close = hook.close

    def block(self, steps):
        watch = Stopwatch(steps)
        for _ in range(WARM_UP + steps):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(self.x).flatten(0, -2), self.y.flatten())
            loss.backward()
            self.optimizer.step()
            self.after()
            watch.step()
        return watch.spent


def wandb_run(folder):
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(folder))
    import wandb

    return wandb.init(project="frameworks", dir=str(folder), settings=wandb.Settings(silent=True))


def compiled_gpt(arm, folder):
    import torch

    return Loop(arm, folder, torch.compile)


def ddp(arm, folder):
    import torch

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    return Loop(arm, folder, torch.nn.parallel.DistributedDataParallel)


# -- libraries that train by themselves ---------------------------------------------------------------


class HuggingFace:
    """`transformers.Trainer` with a small GPT-2."""

    def __init__(self, arm, folder):
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.arm, self.folder = arm, folder
        config = GPT2Config(n_layer=2, n_head=4, n_embd=128, n_positions=64, vocab_size=256)
        self.model = GPT2LMHeadModel(config)
        self.rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 256, (64, 64))]
        self.run = wandb_run(folder) if arm == "wandb" else None
        if self.run is not None:
            self.run.watch(self.model, log="all", log_freq=1)

    def block(self, steps):
        from transformers import Trainer, TrainerCallback, TrainingArguments

        watch, run = Stopwatch(steps), self.run

        class Watching(TrainerCallback):
            def on_step_end(self, args, state, control, **kwargs):
                if run is not None:
                    run.log({"step": state.global_step})
                watch.step()

        arguments = {"per_device_train_batch_size": 8, "max_steps": WARM_UP + steps, "use_cpu": True}
        arguments |= {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_steps": 10}
        own = self._own()
        trainer = Trainer(
            self.model,
            TrainingArguments(str(self.folder / "out"), **arguments),
            train_dataset=self.rows,
            callbacks=[*own, Watching()],
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its logs
            trainer.train()
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm not in OURS:
            return []
        every = OURS[self.arm]
        return [tdbg.TransformersCallback(store=self.folder / "run", save_every=every, profiler=False)]

    def close(self):
        if self.run is not None:
            self.run.finish()


class Keras:
    """``fit`` with a small classifier; epochs of 10 steps."""

    def __init__(self, arm, folder):
        import keras

        import tdbg_lab as tdbg

        keras.utils.set_random_seed(0)
        random = np.random.default_rng(0)
        rows, features, classes = 256, 64, 10
        self.data = (
            random.random((rows * 10, features), dtype=np.float32),
            random.integers(0, classes, rows * 10),
        )
        layers = [keras.layers.Dense(512, activation="relu") for _ in range(3)]
        self.model = keras.Sequential([keras.Input((features,)), *layers, keras.layers.Dense(classes)])
        self.model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        self.own = []
        if arm in OURS:
            self.own = [tdbg.KerasCallback(folder / "run", save_every=OURS[arm], profiler=False)]
        elif arm == "tensorboard-10":
            self.own = [keras.callbacks.TensorBoard(folder / "board", histogram_freq=1)]

    def block(self, steps):
        import keras

        watch = Stopwatch(steps)

        class Watching(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                watch.step()

        x, y = self.data
        epochs = -(-(WARM_UP + steps) // 10)
        self.model.fit(x, y, batch_size=256, epochs=epochs, verbose=0, callbacks=[*self.own, Watching()])
        return watch.spent

    def close(self):
        for one in self.own:
            if hasattr(one, "handle"):
                no_problems(one.handle)


class Boosting:
    """`xgboost.train` with metrics of the training data."""

    def __init__(self, arm, folder):
        import xgboost

        self.arm, self.folder = arm, folder
        x = np.random.default_rng(0).normal(size=(10_000, 30))
        self.matrix = xgboost.DMatrix(x, (x[:, 0] * x[:, 1] > 0).astype(int))
        self.run = wandb_run(folder) if arm == "wandb" else None

    def block(self, steps):
        import xgboost

        watch = Stopwatch(steps)

        class Watching(xgboost.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                watch.step()
                return False

        parameters = {"objective": "binary:logistic", "nthread": 1, "max_depth": 6}
        xgboost.train(
            parameters,
            self.matrix,
            num_boost_round=WARM_UP + steps,
            evals=[(self.matrix, "train")],
            verbose_eval=False,
            callbacks=[*self._own(), Watching()],
        )
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm in OURS:
            return [tdbg.XGBoostCallback(self.folder / "run", save_every=OURS[self.arm], profiler=False)]
        if self.run is not None:
            from wandb.integration.xgboost import WandbCallback

            return [WandbCallback(log_feature_importance=False)]
        return []

    def close(self):
        if self.run is not None:
            self.run.finish()


CASES = {
    "compiled-gpt": compiled_gpt,
    "ddp-2": ddp,
    "hf-trainer": HuggingFace,
    "keras-torch": Keras,
    "keras-tensorflow": Keras,
    "keras-jax": Keras,
    "xgboost": Boosting,
}


# -- turns --------------------------------------------------------------------------------------------


def measure(case, arms, rounds, steps, folder):
    """Seconds a step by arm, (rounds, 2) process CPU and wall; or why an arm did not run."""
    trainings, times, failed = {}, {arm: [] for arm in arms}, {}
    for turn in range(rounds + 1):
        for arm in arms if turn % 2 else arms[::-1]:
            try:
                if arm not in trainings and arm not in failed:
                    (folder / arm).mkdir(exist_ok=True)
                    trainings[arm] = CASES[case](arm, folder / arm)
                spent = trainings[arm].block(steps) if arm in trainings else None
            except Exception as error:  # noqa: BLE001 - said in the table
                failed[arm] = f"{type(error).__name__}: {error}"[:300]
                trainings.pop(arm, None)
                continue
            if (turn or not rounds) and spent is not None:
                times[arm].append(spent.tolist())
    for arm, training in trainings.items():
        try:
            training.close()
        except Exception as error:  # noqa: BLE001 - said in the table
            failed[arm] = f"{type(error).__name__}: {error}"[:300]
    return {"times": {arm: found for arm, found in times.items() if arm not in failed}, "failed": failed}


def processes(case, arms, python, options, folder):
    """Start what measures a case: two workers where it is distributed."""
    environment = {**os.environ, "KERAS_BACKEND": case.removeprefix("keras-") if "keras" in case else "torch"}
    environment |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "TOKENIZERS_PARALLELISM": "false"}
    command = [python, __file__, "--one", case, "--arms", ",".join(arms), "--folder", str(folder)]
    command += ["--rounds", str(options.rounds), "--steps", str(options.steps)]
    workers = 2 if case == "ddp-2" else 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for rank in range(workers):
        if workers > 1:
            environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(workers)}
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        yield subprocess.Popen(
            command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


def in_processes(case, arms, python, options):
    folder = Path(tempfile.mkdtemp(prefix="frameworks-"))
    running = list(processes(case, arms, python, options, folder))
    try:
        said = [one.communicate(timeout=options.timeout) for one in running]
    except subprocess.TimeoutExpired:
        return {"times": {}, "failed": dict.fromkeys(arms, f"took longer than {options.timeout} s")}
    finally:
        for one in running:
            one.kill()
        shutil.rmtree(folder, ignore_errors=True)
    for line in reversed(said[0][0].splitlines()):
        if line.startswith('{"times"'):
            return json.loads(line)
    return {"times": {}, "failed": dict.fromkeys(arms, " ".join(said[0][1].split())[-300:])}


# -- reporting ----------------------------------------------------------------------------------------


def rows_of(case, found):
    if "bare" not in found["times"]:
        return
    bare = np.array(found["times"]["bare"]) * 1000
    step = np.median(bare, axis=0)
    noise = np.median(np.abs(bare - step), axis=0)
    for arm, times in found["times"].items():
        if arm == "bare":
            continue
        extra = np.median(np.array(times) * 1000 - bare, axis=0)
        yield {
            "case": case,
            "arm": arm,
            "bare_cpu_ms": float(step[0]),
            "extra_cpu_ms": float(extra[0]),
            "overhead_cpu": float(extra[0] / step[0]),
            "noise_cpu": float(noise[0] / step[0]),
            "bare_wall_ms": float(step[1]),
            "extra_wall_ms": float(extra[1]),
            "overhead_wall": float(extra[1] / step[1]),
        }


def ratios(rows):
    """How much less CPU time tdbg-lab takes than each peer that saves as often."""
    extra = {(row["case"], row["arm"]): row["extra_cpu_ms"] for row in rows}
    for (case, arm), theirs in extra.items():
        ours = extra.get((case, "tdbg-10" if arm.endswith("-10") else "tdbg-1"))
        if arm not in OURS and ours is not None:
            yield {"case": case, "peer": arm, "times_less_cpu": theirs / ours if ours > 0 else None}


def as_markdown(result):
    from overhead import table

    facts = result["machine"]
    rows = [
        [
            *(row["case"], row["arm"], f"{row['bare_cpu_ms']:.2f}", f"{row['extra_cpu_ms']:.2f}"),
            *(f"{row['overhead_cpu']:+.1%}", f"±{row['noise_cpu']:.0%}", f"{row['overhead_wall']:+.1%}"),
        ]
        for row in result["rows"]
    ]
    peers = [
        [
            one["case"],
            one["peer"],
            "noise" if one["times_less_cpu"] is None else f"{one['times_less_cpu']:.1f}",
        ]
        for one in result["ratios"]
    ]
    head = ["case", "arm", "bare step ms (CPU)", "extra ms", "overhead (CPU)", "noise", "overhead (wall)"]
    return "\n".join(
        [
            "# What capture costs where something else trains\n",
            f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, torch {facts['torch']}.",
            f"Load average {facts['load_average']:.1f} at the start, {result['load_after']:.1f} at the end.",
            f"Medians of {result['rounds'] or 1} paired blocks of {result['steps']} steps,",
            "in process CPU time;",
            "two processes each on one core for `ddp-2`, of which the first is shown.",
            "`tdbg-1` and `tdbg-10` save every step and every 10th with all that is on by default. Peers:\n",
            *(f"- `{name}`: {what}." for name, what in WHAT.items()),
            "",
            *table(head, rows),
            "\nTimes less CPU time than a peer that saves as often:\n",
            *table(["case", "peer", "times less"], peers),
            *([""] if result["failed"] else []),
            *(f"- {case}, {arm}: did not run ({why})" for case, arm, why in result["failed"]),
            "",
        ]
    )


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--rounds", type=int, default=4, help="paired blocks of each arm")
    parser.add_argument("--steps", type=int, default=40, help="of a block, besides its warm-up; tens")
    parser.add_argument("--quick", action="store_true", help="one cold block of 10 steps: does it work")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one case")
    parser.add_argument("--smdebug-python", default="", help="interpreter of a venv with smdebug")
    parser.add_argument("--out", type=Path, default=RESULTS / "frameworks")
    parser.add_argument("--one", default="", help="measure one case here and print a JSON line")
    parser.add_argument("--arms", default="", help="of that case")
    parser.add_argument("--folder", type=Path, help="where that case writes")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.steps = 0, 10
    return options


def main():
    options = options_of()
    if options.one:
        found = measure(options.one, options.arms.split(","), options.rounds, options.steps, options.folder)
        print("\n" + json.dumps(found), flush=True)
        return
    from overhead import machine

    result = {"machine": machine(), "rounds": options.rounds, "steps": options.steps, "rows": []}
    result["failed"] = []
    for case in options.cases.split(","):
        parts = [(("bare", *OURS, *PEERS[case]), sys.executable)]
        if options.smdebug_python and case in SMDEBUG_RUNS:
            parts.append((("bare", "smdebug"), options.smdebug_python))
        for arms, python in parts:
            found = in_processes(case, arms, python, options)
            result["failed"] += [(case, arm, why) for arm, why in found["failed"].items()]
            for row in rows_of(case, found):
                result["rows"].append(row)
                print(
                    f"{case:16} {row['arm']:14} bare {row['bare_cpu_ms']:8.2f} ms"
                    f"  extra {row['extra_cpu_ms']:8.2f} ms  {row['overhead_cpu']:+8.1%}"
                    f"  (noise {row['noise_cpu']:.0%}; wall {row['overhead_wall']:+.1%})",
                    flush=True,
                )
        for _, arm, why in (one for one in result["failed"] if one[0] == case):
            print(f"{case:16} {arm:14} did not run: {why}", flush=True)
    result["ratios"] = list(ratios(result["rows"]))
    result["load_after"] = os.getloadavg()[0]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(as_markdown(result))


if __name__ == "__main__":
    main()
