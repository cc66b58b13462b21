"""A training loop as the predecessor's documentation shows it: hook, module, loss, modes."""

import json
import sys

import numpy as np
import smdebug.pytorch as smd
import torch
import torch.nn.functional as F
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig, SaveConfigMode
from torch import nn, optim

out_dir, data = sys.argv[1:3]
torch.manual_seed(0)
torch.set_num_threads(1)
digits = np.load(data)
images, labels = torch.from_numpy(digits["images"]), torch.from_numpy(digits["labels"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.relu = nn.ReLU()
        self.fc = nn.Linear(4 * 36, 10)

    def forward(self, x):
        x = self.relu(self.conv(x))
        return self.fc(torch.flatten(x, 1))


hook = smd.Hook(
    out_dir=out_dir,
    save_config=SaveConfig(
        {
            smd.modes.TRAIN: SaveConfigMode(save_interval=4),
            smd.modes.EVAL: SaveConfigMode(save_interval=2),
            smd.modes.PREDICT: SaveConfigMode(save_interval=1),
            smd.modes.GLOBAL: SaveConfigMode(save_interval=1),
        }
    ),
    include_collections=["weights", "biases", "gradients", "relu_output", "fc"],
)
hook.get_collection("relu_output").include("relu_output")
hook.get_collection("relu_output").reduction_config = ReductionConfig(
    reductions=["min", "max", "mean", "std"], abs_reductions=["mean"], norms=["l1", "l2"], save_shape=True
)
net = Net()
hook.get_collection("fc").add_module_tensors(net.fc, inputs=True, outputs=True)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.2, momentum=0.5)
hook.register_module(net)
hook.register_loss(criterion)

for epoch in range(2):
    hook.set_mode(smd.modes.TRAIN)
    net.train()
    for start in range(0, 320, 32):
        x, y = images[start : start + 32], labels[start : start + 32]
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        hook.save_scalar("lr", 0.2 / (epoch + 1))
    hook.set_mode(smd.modes.EVAL)
    net.eval()
    with torch.no_grad():
        for start in range(320, 448, 32):
            output = net(images[start : start + 32])
            loss = criterion(output, labels[start : start + 32])
            hook.record_tensor_value(
                "nll_loss", F.nll_loss(F.log_softmax(output, 1), labels[start : start + 32])
            )
hook.close()

trial = smd.create_trial(out_dir)
answer = {
    "names": trial.tensor_names(),
    "steps": trial.steps(),
    "modes": [mode.name for mode in trial.modes()],
    "mode_steps": [[trial.mode(step).name, trial.mode_step(step)] for step in trial.steps()],
    "values": {},
    "reductions": {},
    "shapes": {},
}
for name in trial.tensor_names():
    tensor = trial.tensor(name)
    answer["values"][name] = {}
    for mode in smd.modes:
        for step in tensor.steps(mode=mode):
            place = f"{mode.name} {step}"
            try:
                value = np.asarray(tensor.value(step, mode=mode))
                answer["values"][name][place] = [
                    str(value.dtype),
                    list(value.shape),
                    value.ravel()[:5].tolist(),
                ]
            except Exception as error:  # the class of it is the answer
                answer["values"][name][place] = type(error).__name__
            found = tensor.reduction_values(step, mode=mode)
            answer["reductions"][f"{name} {place}"] = {
                f"{red} {absolute}": float(one) for (red, absolute), one in sorted(found.items())
            }
            answer["shapes"][f"{name} {place}"] = list(tensor.shape(step, mode=mode))
print("ANSWER " + json.dumps(answer))
