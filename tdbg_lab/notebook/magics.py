"""The `%tdbg` line magic and the `%%tdbg` cell magic."""

from __future__ import annotations

import ast
import logging
import sys
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, output_can_be_silenced

from tdbg_lab.errors import TdbgError, TrainingStopped
from tdbg_lab.notebook.arguments import help_text, parse
from tdbg_lab.notebook.commands import attach, run_line, watch

if TYPE_CHECKING:
    from tdbg_lab.capture.auto import AutoWatch

__all__ = ["TdbgMagics"]

log = logging.getLogger(__name__)


@magics_class
class TdbgMagics(Magics):  # type: ignore[misc, unused-ignore]
    """Watch models from notebook cells; what goes wrong is said in one sentence."""

    # A semicolon at the end of a cell hides its value, as in any other cell.
    @output_can_be_silenced  # type: ignore[untyped-decorator, unused-ignore]
    @line_cell_magic  # type: ignore[untyped-decorator, unused-ignore]
    def tdbg(self, line: str, cell: str | None = None) -> Any:
        """Watch a model while it trains: `%tdbg help`."""
        if cell is not None:
            return self._cell(line, cell)
        try:
            answer = run_line(line, self.shell.user_ns)
        except Exception as error:  # noqa: BLE001 - a magic speaks in sentences
            return _complain(error)
        if not isinstance(answer, str):
            return answer
        sys.stdout.write(answer + "\n")
        return None

    def _cell(self, line: str, cell: str) -> Any:
        """Run `cell`, watched; what the cell raises is raised.

        With a model on `line` that is attached, else what the cell trains is found by itself.
        """
        namespace = self.shell.user_ns
        try:
            parsed = parse("attach " + line.strip().removeprefix("attach"))
            named = parsed.values.get("model") or parsed.values.get("optimizer")
            handle = attach(parsed, namespace) if named else None
            found = None if named else watch(parsed, namespace)
        except Exception as error:  # noqa: BLE001
            return _complain(error)
        if handle is not None:
            with handle:
                return self._run(cell)
        return self._run(cell) if found is None else self._run_found(found, cell)

    def _run_found(self, found: AutoWatch, cell: str) -> Any:
        """Run `cell` while `found` looks for what it trains, and say what it was."""
        try:
            with found:
                return self._run(cell)
        finally:  # a run that failed is one to look at
            sys.stderr.write(f"tdbg: {found.summary()}\n")

    def _run(self, cell: str) -> Any:
        """Run code as a cell of its own; the value of a last expression is returned."""
        source = self.shell.transform_cell(cell)
        name = self.shell.compile.cache(source, self.shell.execution_count, raw_code=cell)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self.shell.user_ns)  # noqa: S102 - the user's own cell
        if last is None:
            return None
        return eval(compile(ast.Expression(last.value), name, "eval"), self.shell.user_ns)  # noqa: S307


def _complain(error: Exception) -> None:
    """Say what is wrong in one sentence on stderr."""
    if isinstance(error, TrainingStopped):
        raise error
    text = str(error) if isinstance(error, TdbgError) else f"%tdbg failed: {type(error).__name__}: {error}"
    log.debug("%%tdbg failed", exc_info=error)
    sys.stderr.write(" ".join(text.split()) + "\n")


TdbgMagics.tdbg.__doc__ = help_text()
