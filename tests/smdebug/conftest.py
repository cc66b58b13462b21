"""A small trained run, and what it was trained with."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _one_thread_and_no_hook_left():
    from tdbg_lab.smdebug.core.singleton_utils import del_hook

    torch.set_num_threads(1)
    yield
    del_hook()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 5)
        self.relu = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(5, 3)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def train():
    """Train a model some steps; the hook must be registered already."""

    def run(model, criterion, steps, *, after=None):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(1)
        for step in range(steps):
            x = torch.randn(6, 4, generator=generator)
            y = torch.randint(0, 3, (6,), generator=generator)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            if after is not None:
                after(step, loss)

    return run
