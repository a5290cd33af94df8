"""One core for all that is measured."""

import os

import pyarrow as pa


def one_core() -> None:
    """Keep this process and the threads of Arrow on one core, if the system supports that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
