"""Configurations of SageMaker Debugger, read as they are: its hook's and its profiler's JSON.

Keys keep their case, numbers and switches may be texts, and nothing in them is ever evaluated. An
unknown key or a wrong value gives a `ConfigError` with one sentence.
"""

from tdbg_lab.config.sagemaker.environment import sagemaker_files
from tdbg_lab.config.sagemaker.hook import CollectionJson, HookJson, is_sagemaker
from tdbg_lab.config.sagemaker.profiler import ProfilerJson
from tdbg_lab.config.sagemaker.settings import sagemaker_settings

__all__ = [
    "CollectionJson",
    "HookJson",
    "ProfilerJson",
    "is_sagemaker",
    "sagemaker_files",
    "sagemaker_settings",
]
