"""Every bound of the store in one place: run directories are untrusted input.

Sizes are bytes, counts are counts. A file beyond its bound is skipped with a recorded reason.
"""

from __future__ import annotations

from typing import Final

FORMAT: Final = 1
"""Version of the run directory; a reader skips what is newer."""

SEGMENT_BATCHES: Final = {"stats": 256, "spans": 2048, "system": 2048}
SEGMENT_AGE_NS: Final = 30 * 10**9
SEGMENT_BYTES: Final = 64 * 2**20
"""A live segment is closed at the first of these three."""
AGED_SHARE: Final = 8
"""Age closes a segment only with an eighth of its batches: slow runs shall not make thousands."""

ROW_GROUP_ROWS: Final = 2048
"""Rows of one Parquet row group: the unit a reader decodes for one tensor."""
EVENT_GROUP_ROWS: Final = 32_768
"""The same of spans and samples: one group costs as much as its rows, and a short range decodes only one."""
CACHED_FOOTERS: Final = 48
"""Parsed footers of sealed segments that one `Run` keeps."""

RAW_QUEUE_BYTES: Final = 256 * 2**20
"""Raw values waiting for the background thread; beyond it they are dropped and counted."""

COLUMN_CACHE_BYTES: Final = 64 * 2**20
"""Decoded columns of sealed segments that one `Run` keeps."""
HISTOGRAM_COLUMN_BYTES: Final = 32 * 2**20
"""Merged histograms of growing tensors that one `Run` keeps."""

MAX_JSON_BYTES: Final = 8 * 2**20
MAX_NAME_CHARS: Final = 1024
MAX_TEXT_CHARS: Final = 65_536
MAX_TAGS: Final = 256
MAX_TENSORS: Final = 200_000
"""Tensors of one run."""
MAX_RANKS: Final = 4096
MAX_SEGMENTS: Final = 200_000
"""Segments of one stream of one rank."""
MAX_SEGMENT_FILE_BYTES: Final = 2 * 2**30
MAX_SEGMENT_ROWS: Final = 8_000_000
MAX_SEGMENT_VALUES: Final = 512_000_000
"""Values in one column of one sealed segment, list elements counted."""
MAX_METADATA_BYTES: Final = 4 * 2**20
"""Header of one Arrow message."""
MAX_BATCH_BYTES: Final = 512 * 2**20
MAX_READ_BYTES: Final = 16 * 2**20
"""Read at once from a live segment."""
MAX_RAW_HEADER_BYTES: Final = 16 * 2**20
MAX_RAW_FILES: Final = 500_000
MAX_FINDINGS: Final = 20_000
MAX_FINDINGS_BYTES: Final = 64 * 2**20
MAX_FACTS: Final = 256
"""Numbers in the evidence, the fix or the parameters of one rule."""
MAX_RULE_RAW_BYTES: Final = 64 * 2**20
"""Raw values of one tensor that a rule may ask for at once."""
MAX_REQUESTS: Final = 1000
MAX_PROBLEMS: Final = 200
MAX_LIST_DEPTH: Final = 5
"""Folders below a root in which `list_runs` looks for runs, and the Lab where nothing else is set."""
MAX_LISTED_FOLDERS: Final = 50_000
RUNNER_SILENCE_NS: Final = 60 * 10**9
"""A rule runner that has said nothing for this long, twelve of its heartbeats, may be gone."""
CRASH_SILENCE_NS: Final = 120 * 10**9
"""A run of another host that has not written for this long counts as crashed."""
