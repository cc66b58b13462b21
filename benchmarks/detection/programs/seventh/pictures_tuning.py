"""Fine-tuning in the seventh set: nets that learnt from other pictures and tables, with parts that stay."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.detection.faults import fifth_tables as fifth
from benchmarks.detection.faults import fourth, second, setup, silent
from benchmarks.detection.faults import seventh_tables as seventh
from benchmarks.detection.program import Task
from benchmarks.detection.programs import variants as v
from benchmarks.detection.programs.fifth import ways
from benchmarks.detection.programs.fifth.tables import half_cosine
from benchmarks.detection.programs.fourth import ways as w
from benchmarks.detection.programs.seventh import pictures_data, tables_data
from benchmarks.detection.programs.seventh.pictures import spectra_coded, stamps_plain, weaves_named
from benchmarks.detection.programs.seventh.tables import tickets_routed
from benchmarks.detection.programs.sixth.tables_data import few, moved
from benchmarks.detection.programs.sixth.tuning import taught
from benchmarks.detection.recipe import Recipe

__all__ = ["TASKS"]


def stamps_abroad(seed: int) -> Recipe:
    """The convolutions stay as they are; two new dense layers tell the stamps of another country."""
    model = taught(stamps_plain)
    model[:6].requires_grad_(False)
    model[7], model[9] = nn.Linear(216, 56), nn.Linear(56, 6)
    return Recipe(
        model, *pictures_data.stamps(771, 6, 3600, noise=1.6), batch=40, steps=120, schedule=half_cosine(120),
        optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


def weaves_abroad(seed: int) -> Recipe:
    """All is tuned for a worse camera, what is nearer to the picture at a lower rate."""
    model = taught(weaves_named)
    rates = {"first": 3e-4, "second": 1e-3, "mix": 2e-3, "head": 4e-3}
    return Recipe(
        model, *pictures_data.weaves(772, 1800, 0.45), batch=40, steps=130, schedule=half_cosine(130),
        optimizer=lambda _: torch.optim.AdamW(
            [{"params": model.get_submodule(name).parameters(), "lr": rate} for name, rate in rates.items()]
        ),
    )  # fmt: skip


def tickets_elsewhere(seed: int) -> Recipe:
    """Another firm, with less to learn from: the stem and the first layer stay, the rest is tuned."""
    model = taught(tickets_routed)
    for part in (model.stem, model.change[0], model.gate[0]):
        part.requires_grad_(False)
    model.head = nn.Linear(48, 6)
    return Recipe(
        model, *moved(tables_data.grouped(711, 3000, 18, 6), 1400), batch=40, steps=140,
        schedule=half_cosine(140),
        optimizer=lambda p: torch.optim.SGD(p, 0.03, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip


THAWED = 60


def spectra_read(seed: int) -> Recipe:
    """What learnt to code curves tells powders: first its new head alone, then the layers before it, too."""
    model = taught(spectra_coded)[:4]
    model[2] = nn.Linear(72, 32)
    model.append(nn.Linear(32, 5))
    model[0].requires_grad_(False)

    def thaw(recipe: Recipe, step: int) -> None:
        if step == THAWED:
            model[0].requires_grad_(True)
            if recipe.options.get("joins", True):
                recipe.made_optimizer.add_param_group({"params": list(model[0].parameters()), "lr": 5e-4})

    return Recipe(
        model, *few(tables_data.spectra(773, 2000, noise=0.35), 1200), batch=40, steps=150,
        before_step=[thaw], optimizer=lambda p: torch.optim.Adam(p, 2e-3),
    )  # fmt: skip


TASKS = (
    Task("stamps_abroad", "fine-tuning", stamps_abroad, {"momentum": w.by("SGD", 0.03, momentum=0.9)},
         (setup.constant_output("9"), fourth.same_few(3))),
    Task("weaves_abroad", "fine-tuning", weaves_abroad, {"smoothed": v.smoothed},
         (setup.oscillating(60.0), second.set_back(90))),
    Task("tickets_elsewhere", "fine-tuning", tickets_elsewhere, {"adam": w.by("Adam", 3e-3)},
         (seventh.uphill(), silent.initialised_again("change.1", 90))),
    Task("spectra_read", "fine-tuning", spectra_read, {"clipped": ways.clipped(2.0)},
         (fourth.decay_too_strong(2e-3, 200.0), fifth.thawed_unseen(r"(^|[/.])0\b", THAWED))),
)  # fmt: skip
