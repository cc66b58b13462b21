"""The hook for PyTorch: what it sees, and the names it gives.

=====================  =====================================================
parameter              ``<class of the model>_<dotted name>``
its gradient           ``gradient/<class of the model>_<dotted name>``
input, output          ``<dotted name of the module>_input_0``, ``..._output_0``
loss                   ``<class of the loss>_output_0``
=====================  =====================================================

A step is a forward of the registered model. Parameters are as they were when it began. What
``torch.compile`` returned has the names of the model in it, and runs eagerly in steps that are saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from tdbg_lab.capture.pytorch.fleeting import ScriptWatch
from tdbg_lab.capture.pytorch.stance import EagerStance
from tdbg_lab.capture.pytorch.values import dtype_name, raw_array, tensors_in
from tdbg_lab.records import Kind, Mode
from tdbg_lab.smdebug.core.collection import CollectionKeys
from tdbg_lab.smdebug.core.hook import BaseHook
from tdbg_lab.smdebug.core.recording import follows_from_row
from tdbg_lab.smdebug.exceptions import SMDebugError, SMDebugRuntimeError
from tdbg_lab.smdebug.pytorch.collection import Collection
from tdbg_lab.smdebug.pytorch.probe import Probe
from tdbg_lab.stats.block import scalar_block
from tdbg_lab.stats.tensors import summarize_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tdbg_lab.records import StatsBlock
    from tdbg_lab.smdebug.core.recording import Recording
    from tdbg_lab.smdebug.core.saving import Decision

__all__ = ["Hook"]


class Hook(BaseHook):
    """Saves what passes through a PyTorch model; arguments as `BaseHook`.

    ::

        hook = Hook("runs/first", include_collections=["weights", "gradients"])
        hook.register_module(model)
        hook.register_loss(criterion)
    """

    framework = "torch"
    ddof = 1  # torch.std's
    collection_class = Collection
    default_collections: ClassVar[Mapping[str, Sequence[str]]] = {
        CollectionKeys.ALL: [".*"],
        CollectionKeys.DEFAULT: [],
        CollectionKeys.WEIGHTS: ["^(?!gradient).*weight"],
        CollectionKeys.BIASES: ["^(?!gradient).*bias"],
        CollectionKeys.GRADIENTS: ["^gradient"],
        CollectionKeys.LOSSES: ["[Ll]oss_(?!input).*output"],
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names: dict[int, str] = {}
        self._model: nn.Module | None = None
        self._inner: nn.Module | None = None
        self._root: _Root | None = None
        self._stance = EagerStance()
        self._scripts: ScriptWatch | None = None
        self._counts: dict[str, int] = {}
        self.has_registered_module = False
        self.has_registered_loss_module = False

    # -- registering -------------------------------------------------------------------------------

    def register_module(self, module: nn.Module) -> None:
        """Watch a model: its parameters, their gradients, and what its modules take and give.

        Raises
        ------
        SMDebugError
            If it is no module.
        SMDebugRuntimeError
            If another model is being watched.
        """
        if not isinstance(module, nn.Module):
            raise SMDebugError(f"register_module takes a torch.nn.Module, not {type(module).__name__}.")
        if self._model is module:
            self.logger.info("%s is registered already.", type(module).__name__)
            return
        if self._model is not None:
            raise SMDebugRuntimeError(
                f"This hook watches {type(self._model).__name__}; make another hook for a second model."
            )
        self._model = module
        self._scripts = ScriptWatch()
        inner: nn.Module = getattr(module, "_orig_mod", module)
        self._inner = inner
        self.has_registered_module = True
        self._root = root = _Root(self._guard, "steps", self.forward_pre_hook, self._check_stop)
        self._hung.append(module.register_forward_pre_hook(root))
        for name, one in inner.named_modules():
            self._watch(one, name or type(inner).__name__)
        if inner is not module:
            end = Probe(self._guard, "steps", self._end_forward)
            self._hung.append(module.register_forward_hook(end, always_call=True))
        for name, parameter in inner.named_parameters():
            if parameter.requires_grad:
                tname = f"{type(inner).__name__}_{name}"
                probe = Probe(self._guard, f"gradient/{tname}", self.backward_hook(tname))
                self._hung.append(parameter.register_hook(probe))  # type: ignore[no-untyped-call]

    register_hook = register_module

    def register_loss(self, loss_module: nn.Module) -> None:
        """Watch a loss.

        Raises
        ------
        SMDebugError
            If it is no loss module.
        """
        if not isinstance(loss_module, nn.modules.loss._Loss):  # noqa: SLF001
            raise SMDebugError(
                f"register_loss takes a loss module such as nn.CrossEntropyLoss(), "
                f"not a {type(loss_module).__name__}; "
                "the value of a loss function is saved by record_tensor_value('loss', value)."
            )
        self.has_registered_loss_module = True
        if id(loss_module) not in self._names:
            self._watch(loss_module, type(loss_module).__name__)

    def _watch(self, module: nn.Module, name: str) -> None:
        self._names[id(module)] = name
        probe = Probe(self._guard, f"module/{name}", self._take)
        self._hung.append(module.register_forward_hook(probe, with_kwargs=True))

    def _name_collections(self) -> None:
        for collection in self.get_collections().values():
            chosen = collection.modules if isinstance(collection, Collection) else {}
            for module, (inputs, outputs) in chosen.items():
                name = self._names.get(id(module))
                for wanted, what in ((inputs, "input"), (outputs, "output")):
                    if wanted and name is not None:
                        collection.include(rf"^{_escaped(name)}_{what}_\d+$")

    # -- steps -------------------------------------------------------------------------------------

    def forward_pre_hook(self, module: nn.Module, _inputs: Any) -> None:
        """The model is called: the last step is over, the next begins, parameters are saved.

        Raises
        ------
        InvalidCollectionConfiguration
            At the first step, if a collection chooses nothing.
        """
        self._guard.run("step", self._end_step)
        self._counts = {}
        self._begin_step(Mode.TRAIN if module.training else Mode.EVAL)
        if self._due:
            inner = module if self._inner is None else self._inner
            self._guard.run("parameters", self._save_parameters, inner)
            if inner is not module:  # compiled code calls no hooks
                self._stance.take()

    def _end_forward(self, *_values: Any) -> None:
        self._stance.leave()

    def _check_stop(self) -> None:
        """Unguarded: a stop has to reach the training loop."""
        if self._recording is not None:
            self._recording.poll_stop(self.step)

    def _save_parameters(self, module: nn.Module) -> None:
        prefix = type(module).__name__
        chosen = []
        for name, parameter in module.named_parameters():
            tname = f"{prefix}_{name}"
            decision = self._decision(tname)
            if decision and parameter.numel():
                chosen.append((tname, name, parameter, decision))
        if chosen and self._recording is not None:
            block = summarize_tensors([parameter.detach() for _, _, parameter, _ in chosen])
            for row, (tname, name, parameter, decision) in enumerate(chosen):
                kind = Kind.BIAS if "bias" in name.rpartition(".")[2] else Kind.WEIGHT
                place = block, row, name.rpartition(".")[0]
                self._hold(self._recording, tname, kind, parameter, decision, place)

    def forward_hook(self, module: nn.Module, inputs: Any, outputs: Any) -> None:
        """A module was called."""
        self._take(module, inputs, {}, outputs)

    fhook = forward_hook

    def _take(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any], outputs: Any) -> None:
        if not self._due:
            return
        name = self._names.get(id(module))
        if name is not None:
            self._save_all(name, "input", tensors_in([args, dict(kwargs)]), Kind.INPUT)
            self._save_all(name, "output", tensors_in(outputs), Kind.ACTIVATION)

    def _save_all(self, name: str, what: str, tensors: Sequence[torch.Tensor], kind: Kind) -> None:
        """Save what a module took or gave; a further call within a step goes on counting."""
        stem = f"{name}_{what}_"
        first = self._counts.get(stem, 0)
        self._counts[stem] = first + len(tensors)
        for index, tensor in enumerate(tensors, first):
            self._save(f"{stem}{index}", kind, tensor, name)

    def _save(self, tname: str, kind: Kind, tensor: torch.Tensor, module: str = "") -> None:
        decision = self._decision(tname)
        recording = self._recording
        if not decision or recording is None or not tensor.numel():
            return
        if CollectionKeys.LOSSES in self._members_of(tname):
            kind = Kind.LOSS
        tensor = tensor.detach()
        single = tensor.numel() == 1 and tensor.is_floating_point()
        block = scalar_block([float(tensor)]) if single else summarize_tensors([tensor])
        path = "" if self._inner is not None and module == type(self._inner).__name__ else module
        self._hold(recording, tname, kind, tensor, decision, (block, 0, path))

    def _hold(
        self,
        recording: Recording,
        tname: str,
        kind: Kind,
        tensor: torch.Tensor,
        decision: Decision,
        place: tuple[StatsBlock, int, str],
    ) -> None:
        block, row, module = place
        key = self._key(tname, kind, dtype_name(tensor), tuple(tensor.shape), module)
        wanted = decision.raw or any(not follows_from_row(*one) for one in decision.reductions)
        recording.hold(key, block, row, raw_array(tensor) if wanted else None, decision)

    def bhook(self, module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        """Nothing: gradients are those of parameters, of which `backward_hook` is called."""

    def should_save_dataloader_metrics(self, metrics_name: str) -> bool:  # noqa: ARG002
        """False: nobody has to measure data loading for us, the profiler of a run does."""
        return False

    def backward_hook(self, tname: str) -> Callable[[torch.Tensor], None]:
        """What saves the gradient of a parameter when it is known; a later one takes its place."""
        name = f"gradient/{tname}"
        module = tname.partition("_")[2].rpartition(".")[0]

        def save(gradient: torch.Tensor) -> None:
            if self._due:
                self._save(name, Kind.GRADIENT, gradient, module)

        return save

    def close(self) -> None:
        """Write what is held, and take the hook off. Idempotent."""
        if (
            not self._closed
            and self._root is not None
            and self._root.compiled
            and self.step == self.init_step
        ):
            self.logger.warning(
                "Nothing is saved: the model that was registered was only called by compiled code. "
                "Register what torch.compile returns."
            )
        self._stance.leave()
        super().close()

    # -- by hand -----------------------------------------------------------------------------------

    def record_tensor_value(self, tensor_name: str, tensor_value: torch.Tensor) -> None:
        """Save a value, such as that of a loss function, as ``<name>_output_0`` of the current step."""
        if self._due:
            self._guard.run(
                f"record/{tensor_name}",
                self._save_all,
                tensor_name,
                "output",
                tensors_in(tensor_value),
                Kind.ACTIVATION,
            )

    @staticmethod
    def count_parameters(model: nn.Module) -> int:
        """Numbers in the parameters that are trained."""
        return sum(one.numel() for one in model.parameters() if one.requires_grad)


class _Root(Probe):
    """Begins steps. Only the user's own mistakes and stop requests leave it."""

    def __init__(
        self,
        guard: Any,
        name: str,
        function: Callable[..., None],
        check: Callable[[], None],
    ) -> None:
        super().__init__(guard, name, function)
        self._check = check
        self.compiled = False
        """Whether compiled code has passed here, unseen."""

    def __call__(self, *values: Any) -> None:
        """The model is called."""
        if torch.compiler.is_compiling():
            self.compiled = True
            return
        self._check()
        self._function(*values)


def _escaped(name: str) -> str:
    return name.replace(".", r"\.")
