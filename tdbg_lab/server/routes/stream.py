"""``/tdbg/stream``: the one socket of a client. It says what changed; data are fetched over REST."""

from __future__ import annotations

import asyncio
import contextlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any, cast

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from tdbg_lab.errors import ConfigError
from tdbg_lab.server.jsonable import encode
from tdbg_lab.server.requests import HostRequest, parse_message
from tdbg_lab.server.routes.base import AUTH_RESOURCE, Route
from tdbg_lab.server.subscriber import Subscriber

if TYPE_CHECKING:
    from tdbg_lab.server.services import Services

__all__ = ["CloseCode", "handlers"]

MAX_MESSAGE_BYTES = 64 * 1024


class CloseCode(IntEnum):
    """Why the server closes a socket."""

    GOING_AWAY = 1001
    """The server ends."""
    BAD_MESSAGE = 4400
    """The client sent something that is none of ``watch``, ``host`` and ``ping``."""


class StreamHandler(WebSocketMixin, JupyterHandler, WebSocketHandler):
    """Sends what waits in the outbox of one `Subscriber`."""

    auth_resource = AUTH_RESOURCE
    _subscriber: Subscriber | None = None
    _sender: asyncio.Task[None] | None = None

    @property
    def services(self) -> Services:
        """The services of the extension."""
        return cast("Services", self.settings["tdbg_services"])

    @property
    def max_message_size(self) -> int:
        """Longest message a client may send, bytes."""
        return MAX_MESSAGE_BYTES

    def get_compression_options(self) -> dict[str, Any] | None:
        """No compression: messages are small, and a compressor for each socket is not."""
        return None

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Check that the user may read, then upgrade."""
        allowed = await ensure_async(
            self.authorizer.is_authorized(self, self.current_user, "read", self.auth_resource)
        )
        if not allowed:
            raise HTTPError(403, f"User is not authorized to read on resource: {self.auth_resource}.")
        await super().get(*args, **kwargs)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Join the hub."""
        super().open(*args, **kwargs)
        self.set_nodelay(True)
        services = self.services
        self._subscriber = Subscriber(services.catalog, services.tails, services.summaries, services.meters)
        services.hub.join(self._subscriber)
        self._sender = asyncio.ensure_future(self._send(self._subscriber))

    async def on_message(self, message: str | bytes) -> None:
        """Watch other runs, look at the machine, or answer a ping."""
        if self._subscriber is None:
            return
        try:
            request = parse_message(message)
        except ConfigError as error:
            self.close(CloseCode.BAD_MESSAGE, str(error)[:100])
            return
        if isinstance(request, HostRequest):
            self._subscriber.look(on=request.on)
        elif request.runs is None:
            self._subscriber.outbox.put("pong", {"type": "pong"})
        else:
            await self._subscriber.watch(request.runs)

    def on_close(self) -> None:
        """Leave the hub."""
        if self._sender is not None:
            self._sender.cancel()
        if self._subscriber is not None:
            self.services.hub.leave(self._subscriber)
            self._subscriber = None

    async def _send(self, subscriber: Subscriber) -> None:
        """Send one message after the other; each waits until the one before has left."""
        with contextlib.suppress(WebSocketClosedError):
            while True:
                await self.write_message(encode(await subscriber.outbox.get()).decode())


handlers: list[Route] = [(r"/tdbg/stream", StreamHandler)]
