"""Checks on a Dask cluster: runs times groups of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tdbg_lab.errors import ConfigError, MissingDependencyError
from tdbg_lab.records import RuleState, RuleStatus
from tdbg_lab.rules.checking import check_run
from tdbg_lab.rules.grouping import relate_after
from tdbg_lab.rules.payload import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.base import Rule

__all__ = ["check_on_cluster", "partition"]

_RETRIES = 3
"""Times that a task may be lost with its worker."""
_TIMEOUT_S = 15.0


class _Task(NamedTuple):
    path: Path
    names: tuple[str, ...]
    future: Any


def check_on_cluster(
    runs: Sequence[Path], rules: Sequence[Rule], scheduler: str
) -> dict[Path, tuple[list[Finding], list[RuleState]]]:
    """Check what runs have recorded, on the workers of a cluster.

    A task is one run and a share of the rules: the statistics of a run are small beside the work of the
    rules, and a rule needs all ranks and tensors of its run to name one root cause. The workers read
    the runs themselves, so they must see them under the same paths, and have tdbg-lab installed. A
    task that is lost with its worker is done again by another one.

    Parameters
    ----------
    runs
        Run directories.
    rules
        Rules to ask; they travel by value.
    scheduler
        Address of the Dask scheduler, ``tcp://host:8786``.

    Returns
    -------
    dict
        Findings, earliest first, and states of the rules, by run.

    Raises
    ------
    MissingDependencyError
        If Dask is not installed.
    ConfigError
        If no scheduler answers there, or a rule cannot be sent.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError("--scheduler needs Dask: pip install 'tdbg-lab[dask]'") from error
    try:
        client = Client(scheduler, timeout=_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"No Dask scheduler answers at {scheduler!r}: start one (`dask scheduler`), or check without."
        ) from error
    with client:
        shares = partition(rules, max(1, len(client.scheduler_info()["workers"])))
        tasks = [
            _Task(
                path,
                tuple(rule.name for rule in share),
                client.submit(_check, path, pack(share), pure=False, retries=_RETRIES),
            )
            for path in runs
            for share in shares
        ]
        return {path: _gathered(path, rules, tasks) for path in runs}


def partition(rules: Sequence[Rule], workers: int) -> list[list[Rule]]:
    """Shares of rules, two for each worker at most, with the rules of one group spread over them.

    Each share reads the run once, so there are no more shares than keep the workers busy.
    """
    count = max(1, min(len(rules), 2 * workers))
    by_group = sorted(rules, key=lambda rule: rule.group)
    return [share for n in range(count) if (share := by_group[n::count])]


def _check(path: Path, data: bytes) -> tuple[list[Finding], list[RuleState]]:
    """On a worker: check one run with a share of the rules."""
    rules, broken, _ = unpack(data)
    findings, states = check_run(path, rules)
    return findings, [*states, *broken]


def _gathered(
    path: Path, rules: Sequence[Rule], tasks: Sequence[_Task]
) -> tuple[list[Finding], list[RuleState]]:
    findings: list[Finding] = []
    states: dict[str, RuleState] = {}
    for task in tasks:
        if task.path != path:
            continue
        try:
            found, told = task.future.result()
        except Exception as error:  # noqa: BLE001 - whatever a worker fails with: the other shares go on
            reason = f"Its check failed on the cluster: {type(error).__name__}: {error}"[:500]
            told = [RuleState(name, RuleStatus.ERROR, reason=reason) for name in task.names]
            found = []
        findings += found
        states |= {state.rule: state for state in told}
    ordered = [states[rule.name] for rule in rules if rule.name in states]
    return relate_after(findings, {rule.name: rule for rule in rules}), ordered
