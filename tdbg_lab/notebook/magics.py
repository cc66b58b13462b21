"""The `%tdbg` line magic and the `%%tdbg` cell magic."""

from __future__ import annotations

import ast
import inspect
import logging
import sys
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, output_can_be_silenced

from tdbg_lab.errors import ConfigError, TdbgError, TrainingStopped
from tdbg_lab.notebook.arguments import help_text, parse
from tdbg_lab.notebook.commands import attach, run_line, watch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

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
        __tracebackhide__ = True  # what the cell raises is shown without our frames
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
        __tracebackhide__ = True
        namespace = self.shell.user_ns
        code = self._compiled(cell)  # before a run is made: one with a slip of the pen has none
        try:
            _refuse_waiting(code)
            parsed = parse("attach " + line.strip().removeprefix("attach"))
            named = parsed.values.get("model") or parsed.values.get("optimizer")
            handle = attach(parsed, namespace) if named else None
            found = None if named else watch(parsed, namespace)
        except Exception as error:  # noqa: BLE001
            return _complain(error)
        if handle is not None:
            with handle:
                return self._run(code)
        return self._run(code) if found is None else self._run_found(found, code)

    def _run_found(self, found: AutoWatch, code: Sequence[CodeType]) -> Any:
        """Run a cell while `found` looks for what it trains, and say what it was."""
        __tracebackhide__ = True
        try:
            with found:
                return self._run(code)
        finally:  # a run that failed is one to look at
            sys.stderr.write(f"tdbg: {found.summary()}\n")

    def _compiled(self, cell: str) -> list[CodeType]:
        """The code of a cell of its own; where it ends with an expression, that stands for itself.

        Raises
        ------
        SyntaxError
            As of any other cell.
        """
        source = self.shell.transform_cell(cell)
        name = self.shell.compile.cache(source, self.shell.execution_count, raw_code=cell)
        tree = ast.parse(source, name)
        parts: list[tuple[ast.AST, str]] = [(tree, "exec")]
        if tree.body and isinstance(last := tree.body[-1], ast.Expr):
            tree.body.pop()
            parts.append((ast.Expression(last.value), "eval"))
        with self.shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
            return [self.shell.compile(part, name, mode) for part, mode in parts]

    def _run(self, code: Sequence[CodeType]) -> Any:
        """Run the code of a cell; the value of a last expression is returned."""
        __tracebackhide__ = True
        value = None
        for part in code:
            value = eval(part, self.shell.user_ns)  # noqa: S307 - the user's own cell
        return value


def _refuse_waiting(code: Sequence[CodeType]) -> None:
    """Raise ConfigError where a cell waits outside of functions: only the notebook's own loop can."""
    if any(part.co_flags & inspect.CO_COROUTINE for part in code):
        raise ConfigError(
            "The cell has an await outside of functions, which no cell magic can run: leave %%tdbg away, "
            "and begin with a cell %tdbg attach --model model --optimizer opt."
        )


def _complain(error: Exception) -> None:
    """Say what is wrong in one sentence on stderr."""
    if isinstance(error, TrainingStopped):
        raise error
    text = str(error) if isinstance(error, TdbgError) else f"%tdbg failed: {type(error).__name__}: {error}"
    log.debug("%%tdbg failed", exc_info=error)
    sys.stderr.write(" ".join(text.split()) + "\n")


TdbgMagics.tdbg.__doc__ = help_text()
