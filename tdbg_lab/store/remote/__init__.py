"""Runs on object stores: ``s3://``, ``gs://`` and ``az://``.

Training writes an ordinary run directory in a spool folder; a process of its own sends it
(`tdbg_lab.store.remote.uploader`). Readers keep a local mirror (`tdbg_lab.store.remote.mirror`) and
read it like any other run. So the network touches neither the training process nor the views, and
nothing that reads or writes run directories knows of object stores.

The run prefix holds the same files under the same names as the run directory, with one exception: a
live segment is a folder of byte ranges (`tdbg_lab.store.remote.keys`), which one after the other are
the Arrow stream. Each range and each sealed segment is an object that never changes, so sending one
again changes nothing.
"""

from __future__ import annotations

from tdbg_lab.store.remote.url import StoreUrl, is_url, parse_url

__all__ = ["StoreUrl", "is_url", "parse_url"]
