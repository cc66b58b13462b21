"""The Jupyter server extension: configuration, and the life of the services."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Dict, Float, Int, List, Unicode

from tdbg_lab.server.announce import register_schemas
from tdbg_lab.server.memory import share_one_allocator
from tdbg_lab.server.roots import make_roots
from tdbg_lab.server.routes import all_handlers
from tdbg_lab.server.services import Limits, Services
from tdbg_lab.store.limits import MAX_LIST_DEPTH

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

__all__ = ["TdbgApp"]


class TdbgApp(ExtensionApp):
    """Serves runs, views and rules to the Lab front end."""

    name = "tdbg_lab"
    app_name = "Tensor Debugger"
    description = "See what happens inside a model while it trains."
    load_other_extensions = True

    run_roots = List(
        Unicode(),
        help="""Folders under which runs are shown, absolute or relative to the server's root directory.
        Empty: the server's root directory. Nothing outside of them is ever read, written or deleted, and
        symbolic links are not followed. A root may be on an object store: s3://bucket/path,
        gs://bucket/path, az://container/path.""",
    ).tag(config=True)
    storage_options = Dict(
        help="""Options for all run roots on object stores, such as endpoint and region. Credentials belong
        into the environment or the file that TDBG_STORAGE_CONFIG names.""",
    ).tag(config=True)
    scan_depth = Int(
        MAX_LIST_DEPTH, min=0, max=32, help="How many folders below a run root a run directory may lie."
    ).tag(config=True)
    max_runs = Int(10_000, min=1, help="How many runs are listed at most.").tag(config=True)
    poll_interval_s = Float(
        1.0,
        min=0.05,
        help="""Seconds between looks at a running run, beside the file system's own events: network file
        systems deliver none.""",
    ).tag(config=True)
    close_delay_s = Float(
        30.0, min=0.0, help="Seconds a run stays open after the last panel that showed it is gone."
    ).tag(config=True)
    pool_size = Int(2, min=1, max=64, help="Threads that draw figures.").tag(config=True)
    job_workers = Int(
        1, min=1, max=16, help="Processes for figures that take long, such as t-SNE; started when needed."
    ).tag(config=True)
    cache_bytes = Int(64 * 2**20, min=0, help="Bytes of drawn figures kept for the next request.").tag(
        config=True
    )

    start_rules = Bool(
        False,
        help="""Start the default rules beside each open run that goes on and has no rules of its own, in a
        process that ends with the run.""",
    ).tag(config=True)

    _services: Services | None = None

    @property
    def _server(self) -> ServerApp:
        return cast("ServerApp", self.serverapp)

    def initialize(self) -> None:  # type: ignore[override]
        """Register our events, then do what every extension does."""
        register_schemas(self._server.event_logger)
        super().initialize()  # type: ignore[no-untyped-call]

    def initialize_settings(self) -> None:
        """Build the services."""
        share_one_allocator()
        limits = Limits(
            scan_depth=self.scan_depth,
            max_runs=self.max_runs,
            poll_interval_s=self.poll_interval_s,
            close_delay_s=self.close_delay_s,
            pool_size=self.pool_size,
            job_workers=self.job_workers,
            cache_bytes=self.cache_bytes,
            start_rules=self.start_rules,
        )
        roots = make_roots(self.run_roots, self._server.root_dir, storage_options=self.storage_options)
        self._services = Services(roots, limits, self._server.event_logger)
        self.settings["tdbg_services"] = self._services
        self.log.info(
            "Tensor Debugger shows runs under %s",
            ", ".join(str(root.remote.url if root.remote else root.path) for root in roots),
        )

    def initialize_handlers(self) -> None:
        """Add the routes."""
        self.handlers.extend(all_handlers())

    async def stop_extension(self) -> None:
        """Close the services."""
        if self._services is not None:
            await self._services.aclose()
