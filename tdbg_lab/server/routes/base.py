"""What all routes share: services, JSON, bounded bodies, and the one place where errors become answers."""

from __future__ import annotations

import asyncio
import re
from http.client import responses
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado.web import HTTPError

from tdbg_lab.errors import TdbgError
from tdbg_lab.run.asker import user_name
from tdbg_lab.server.jsonable import encode
from tdbg_lab.server.requests import BodyTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tornado.web import RequestHandler

    from tdbg_lab.run import Run
    from tdbg_lab.server.roots import Entry
    from tdbg_lab.server.services import Services

__all__ = ["AUTH_RESOURCE", "RUN_ID", "Route", "TdbgHandler", "authorized_to"]

Route = tuple[str, "type[RequestHandler]"]

AUTH_RESOURCE = "tdbg"
"""The resource that authorizers know all routes by."""

RUN_ID = r"(?P<run_id>[0-9a-f]{16})"

MAX_BODY_BYTES = 256 * 1024

_MADE_UP = re.compile(r"[0-9a-f]{32}")
"""The name that Jupyter makes up for who comes with the token of a server."""

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")


def authorized_to(action: str) -> Callable[[F], F]:
    """``@authorized`` for another action than the verb's own."""
    return cast("Callable[[F], F]", authorized(action))


class TdbgHandler(ExtensionHandlerMixin, APIHandler):
    """Base of the REST routes. Every verb of a subclass is ``@web.authenticated`` and ``@authorized``."""

    auth_resource = AUTH_RESOURCE
    _track_activity = False  # an open panel does not keep an idle server alive

    @property
    def services(self) -> Services:
        """The services of the extension."""
        return cast("Services", self.settings["tdbg_services"])

    @property
    def asker(self) -> str:
        """Who asks for something, as others are told; a token alone tells Jupyter nobody's name."""
        asking = self.current_user
        if asking is None:
            return ""
        made_up = _MADE_UP.fullmatch(asking.username)
        return str((user_name() or asking.display_name) if made_up else asking.username)

    def body(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """The request body.

        Raises
        ------
        BodyTooLargeError
            When it is larger than `limit` bytes.
        """
        body = self.request.body or b""
        if len(body) > limit:
            raise BodyTooLargeError(f"The body has {len(body)} bytes; at most {limit} are allowed.")
        return body

    async def entry(self, run_id: str) -> Entry:
        """The run directory of an id.

        Raises
        ------
        NotFoundError
            When there is none.
        """
        return await self.services.catalog.get(run_id)

    async def read(self, run_id: str, function: Callable[[Run], T]) -> T:
        """What `function` reads off an open run, in a thread."""
        async with self.services.tails.lease(await self.entry(run_id)) as tail:
            run = await tail.opened()
            return await self.in_thread(function, run)

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` where it may touch files."""
        return await asyncio.get_running_loop().run_in_executor(
            self.services.readers, lambda: function(*args, **kwargs)
        )

    async def answer(self, value: object) -> None:
        """Finish with `value` as JSON, made in a thread: thousands of runs or tensors take a second."""
        self.finish(await self.in_thread(encode, value))

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Give our own errors the status they name."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, TdbgError):
            status_code = error.http_status
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer ``{"message": one sentence, "reason": class name}``."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        message = responses.get(status_code, "Unknown HTTP error")
        reason = type(error).__name__ if error is not None else message
        if isinstance(error, TdbgError):
            message = str(error)
        elif isinstance(error, HTTPError):
            message = error.get_message() or message
        elif error is not None:
            message = "The server met an error it did not expect; its log says more."
        self.finish(encode({"message": message, "reason": reason}))

    def log_exception(
        self,
        typ: type[BaseException] | None,  # noqa: ARG002 - tornado's signature
        value: BaseException | None,
        tb: TracebackType | None,  # noqa: ARG002 - tornado's signature
    ) -> None:
        """Log what was not expected; the access log has a line for the rest."""
        expected = isinstance(value, TdbgError) and value.http_status < 500
        if not expected and not isinstance(value, HTTPError):
            self.log.error("Uncaught exception at %s", self.request.path, exc_info=value)
