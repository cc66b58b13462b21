"""A trial in a bucket."""

from __future__ import annotations

from typing import Any

from tdbg_lab.smdebug.exceptions import SMDebugNotImplementedError
from tdbg_lab.smdebug.trials.trial import Trial

__all__ = ["S3Trial"]


class S3Trial(Trial):
    """Says how to come to the data: a bucket is not read in place here."""

    def __init__(self, _name: str, bucket_name: str, prefix_name: str, **_kwargs: Any) -> None:
        raise SMDebugNotImplementedError(
            f"A trial does not read s3://{bucket_name}/{prefix_name} in place: copy it into a directory "
            "('aws s3 sync') and create the trial there; tdbg_lab.open_run reads runs in buckets."
        )
