"""``GET /tdbg/plotly/{wanted}/plotly.min.js``: the code that draws live views in notebooks."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.errors import NotFoundError
from tdbg_lab.server.routes.base import Route, TdbgHandler

__all__ = ["handlers"]

FOREVER_S = 365 * 24 * 3600


class PlotlyHandler(TdbgHandler):
    """plotly.js, as installed here."""

    @web.authenticated
    @authorized
    async def get(self, wanted: str) -> None:
        """Answer the code, if this server has that very version; a kernel may have another."""
        code = await self.in_thread(_code, wanted)
        self.set_header("Cache-Control", f"private, max-age={FOREVER_S}, immutable")
        self.finish(code, set_content_type="text/javascript; charset=utf-8")


def _code(wanted: str) -> bytes:
    installed, spec = version("plotly"), find_spec("plotly")
    if wanted == installed and spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_bytes()
    raise NotFoundError(f"There is no code of plotly {wanted} here; installed is {installed}.")


handlers: list[Route] = [(r"/tdbg/plotly/(?P<wanted>[0-9A-Za-z.]{1,40})/plotly\.min\.js", PlotlyHandler)]
