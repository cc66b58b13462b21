"""Backward passes of the program: whose they are, and what they are called on.

``torch.autograd.backward``, which ``Tensor.backward`` calls, is listened to while somebody follows it.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from tdbg_lab.capture.pytorch.frames import leave_out
from tdbg_lab.listening import forget, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tdbg_lab.listening import Listeners

__all__ = ["Follower", "follow", "latest", "leave"]

_BACKWARD = (torch.autograd, "backward")


class Follower(Protocol):
    """Who is told of backward passes."""

    @property
    def last_active_ns(self) -> int:
        """When its training was seen last in this thread, by `time.perf_counter_ns`; -1 without one."""

    def begin_backward(self, objective: torch.Tensor, weight: Any) -> None:
        """``backward`` is called on a number in a thread that was last seen at this one's training.

        `weight` is the gradient that it is given to begin with, as in ``loss.backward(torch.tensor(-1.0))``.
        """

    def end_backward(self, *, own: bool) -> None:
        """A backward is over; `own` says whether `begin_backward` was called of it."""


AFollower = TypeVar("AFollower", bound=Follower)


def follow(follower: Follower) -> None:
    """Tell `follower`, which is held weakly, of each backward from now on."""
    for told in (follower.begin_backward, follower.end_backward):
        leave_out(getattr(told, "__func__", None))
    listen(*_BACKWARD, follower, _telling)


def leave(follower: Follower) -> None:
    """Tell `follower` no longer. Idempotent."""
    forget(*_BACKWARD, follower)


def _telling(original: Callable[..., Any], followers: Listeners[Follower]) -> Callable[..., Any]:
    @wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        told, own = list(followers), None
        if told and isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
            own = told[0] if len(told) == 1 else latest(told)
            if own is not None:
                own.begin_backward(tensors, args[0] if args else kwargs.get("grad_tensors"))
        original(tensors, *args, **kwargs)
        for follower in told:
            follower.end_backward(own=follower is own)

    leave_out(backward, deeply=False)
    return backward


def latest(followers: Iterable[AFollower]) -> AFollower | None:
    """The one whose training this thread was seen at last."""
    found, found_ns = None, -1
    for follower in followers:
        active_ns = follower.last_active_ns
        if active_ns > found_ns:
            found, found_ns = follower, active_ns
    return found


leave_out(latest)
