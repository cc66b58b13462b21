"""A training on a device, captured, in a process of its own: DEVICE RUN [LIBRARY].

LIBRARY makes the device `plain` known, which has memory of its own and no float64. Prints a digest of the
trained weights.
"""

import sys
from types import ModuleType

import torch
from torch import nn

import tdbg_lab as tdbg


def make_known(library):
    """Load a device and give it the name `plain`."""
    torch.ops.load_library(library)
    torch.utils.rename_privateuse1_backend("plain")
    module = ModuleType("plain")
    module.is_available = module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.manual_seed_all = lambda seed: None
    torch._register_device_module("plain", module)
    torch.utils.generate_methods_for_privateuse1_backend()


def main(device, run, library=None):
    if library:
        make_known(library)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    # Values of steps, some of which are saved, are asked for in every way that a loop may ask.
    values = {"activations": {"values": "both"}, "inputs": True}
    with tdbg.attach(
        model,
        optimizer=optimizer,
        loss=criterion,
        store=run,
        save_every=3,
        collections=values,
        profiler=False,
    ) as handle:
        for step in range(12):
            if step == 8:  # which a check looks into
                model[0].reset_parameters()
            x, y = torch.randn(16, 8).to(device), torch.randint(0, 3, (16,)).to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            handle.log(half=loss.detach() / 2)
        assert not handle.problems, handle.problems
    print(*(value.sum().item() for value in model.parameters()))


if __name__ == "__main__":
    main(*sys.argv[1:])
