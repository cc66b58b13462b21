"""The run directory: layout, writers, tail, sealing. `tdbg_lab.run.Run` reads it."""

from __future__ import annotations

from tdbg_lab.store.control import ControlPoll, Request, RequestBoard, answer, pending, request, requests
from tdbg_lab.store.findings import (
    FindingsWriter,
    read_findings,
    read_rule_states,
    read_rule_status,
    write_rule_states,
)
from tdbg_lab.store.folder import RunFolder, create_run, join_run
from tdbg_lab.store.info import RunInfo
from tdbg_lab.store.settings import AppliedSetting, SettingChange, SettingRecord, read_setting_records
from tdbg_lab.store.tail import Chunk, tail
from tdbg_lab.store.writer import RankWriter, SystemWriter

__all__ = [
    "AppliedSetting",
    "Chunk",
    "ControlPoll",
    "FindingsWriter",
    "RankWriter",
    "Request",
    "RequestBoard",
    "RunFolder",
    "RunInfo",
    "SettingChange",
    "SettingRecord",
    "SystemWriter",
    "answer",
    "create_run",
    "join_run",
    "pending",
    "read_findings",
    "read_rule_states",
    "read_rule_status",
    "read_setting_records",
    "request",
    "requests",
    "tail",
    "write_rule_states",
]
