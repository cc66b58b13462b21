"""``/tdbg/views`` and ``/tdbg/runs/{id}/views/{view}``: which pictures there are, and one of them."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.server.requests import parse_view
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to

if TYPE_CHECKING:
    from tdbg_lab.run import Run
    from tdbg_lab.server.roots import Entry

__all__ = ["handlers"]

RUN_ID_FORM = re.compile(RUN_ID)


class ViewsHandler(TdbgHandler):
    """The views."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer each view with its parameters."""
        await self.answer({"views": await self.in_thread(_views)})


class ViewHandler(TdbgHandler):
    """One view of one run. ``POST`` only because parameters are long: nothing changes."""

    @web.authenticated
    @authorized_to("read")
    async def post(self, run_id: str, view: str) -> None:
        """Answer the figure as Plotly JSON."""
        request = parse_view(self.body())
        entry = await self.entry(run_id)
        wanted = await self.in_thread(_run_params, view)
        async with AsyncExitStack() as leases:

            async def opened(found: Entry) -> Run:
                tail = await leases.enter_async_context(self.services.tails.lease(found))
                return await tail.opened()

            run = await opened(entry)
            others: dict[str, Run | tuple[Run, ...]] = {}
            for name, most in wanted.items():
                value = request.params.get(name)
                if value is None:
                    continue
                if most is not None:
                    entries = [await self._entry_or_none(each) for each in _run_ids(name, value, most)]
                    others[name] = tuple([await opened(each) for each in entries if each is not None])
                else:
                    others[name] = await opened(await self.entry(_run_id(name, value)))
            self.finish(await self.services.figures.answer(entry, run, view, request.params, others))

    async def _entry_or_none(self, run_id: str) -> Entry | None:
        """One of several runs; None where it was deleted: the others are drawn without it."""
        try:
            return await self.entry(run_id)
        except NotFoundError:
            return None


def _run_params(view: str) -> dict[str, int | None]:
    """The parameters of a view that are runs, with how many they may be at most; None for a single one."""
    from tdbg_lab.views import find_view

    return {
        param.name: param.most_runs if param.kind == "runs" else None
        for param in find_view(view).params
        if param.kind in {"run", "runs"}
    }


def _run_id(name: str, value: object) -> str:
    if not isinstance(value, str) or not RUN_ID_FORM.fullmatch(value):
        raise ConfigError(f"Parameter {name!r} must be the id of a run, as the list of runs gives it.")
    return value


def _run_ids(name: str, value: object, most: int) -> list[str]:
    if not isinstance(value, list) or len(value) > most:
        raise ConfigError(f"Parameter {name!r} must be a list of at most {most} ids of runs.")
    return [_run_id(name, each) for each in value]


def _views() -> list[dict[str, Any]]:
    from tdbg_lab.views import list_views

    return [each.as_dict() for each in list_views()]


handlers: list[Route] = [
    (r"/tdbg/views", ViewsHandler),
    (rf"/tdbg/runs/{RUN_ID}/views/(?P<view>[a-z][a-z0-9_]{{0,63}})", ViewHandler),
]
