"""``/tdbg/runs/{id}/report`` and ``/tdbg/jobs/{job}/report``: write a report, and download it."""

from __future__ import annotations

from functools import partial

from jupyter_server.auth.decorator import authorized
from tornado import web

from tdbg_lab.errors import ConfigError
from tdbg_lab.server.routes.base import RUN_ID, Route, TdbgHandler, authorized_to

__all__ = ["handlers"]

_CONTENT_TYPES = {"html": "text/html; charset=utf-8", "notebook": "application/x-ipynb+json"}


class ReportHandler(TdbgHandler):
    """A report on a run."""

    @web.authenticated
    @authorized_to("execute")
    async def post(self, run_id: str) -> None:
        """Begin to write it in a worker process and answer the job."""
        entry = await self.entry(run_id)
        name = await self.read(run_id, lambda run: run.info.name)
        await self.answer(self.services.reports.start(run_id, entry.directory, name))


class ReportFileHandler(TdbgHandler):
    """The page that such a job wrote."""

    @property
    def content_security_policy(self) -> str:
        """The page has scripts: they never run as one of the server's own pages."""
        return f"{super().content_security_policy}; sandbox"

    @web.authenticated
    @authorized
    async def get(self, job: str) -> None:
        """Answer it as a download: ``?format=notebook`` the notebook."""
        form = self.get_query_argument("format", "html")
        if form not in _CONTENT_TYPES:
            raise ConfigError("The format of a report is 'html' or 'notebook'.")
        read = partial(self.services.reports.read, notebook=form == "notebook")
        name, page = await self.in_thread(read, job)
        self.set_attachment_header(name)
        self.set_header("Cache-Control", "private, no-store")
        self.finish(page, set_content_type=_CONTENT_TYPES[form])


handlers: list[Route] = [
    (rf"/tdbg/runs/{RUN_ID}/report", ReportHandler),
    (r"/tdbg/jobs/(?P<job>[0-9a-f]{32})/report", ReportFileHandler),
]
