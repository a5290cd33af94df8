"""Resource limits and lifetime of child processes, so that a malicious media file breaks only one of them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

_GB = 1 << 30
_CPU_HOURS = 24
_REUSED_SECONDS = 3600.0  # processor time after which a process is replaced
_PR_SET_PDEATHSIG = 1
_PARENT_CHECK_SECONDS = 1.0


def limit_this_process(*, memory_gb: float | None = None, whole_machine: bool = False) -> None:
    """Limit the memory and processor time of this process and its children, and disable core dumps.

    The memory limit is RLIMIT_DATA. macOS does not enforce it, and Windows supports none of the limits. A core dump
    would contain the recording.

    Args:
        memory_gb: Maximum memory in gigabytes. None (default): half of the machine's memory, but at least 4.
        whole_machine: Allow all memory of the machine, and processor time on all cores.
    """
    if sys.platform == "win32":
        return
    import resource

    cores = os.cpu_count() or 1
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = max(4 * _GB, machine if whole_machine else machine // 2)
    if memory_gb is not None:
        memory = round(memory_gb * _GB)
    limits = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_CPU: _CPU_HOURS * 3600 * (cores if whole_machine else 1),
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        hard = resource.getrlimit(kind)[1]
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(kind, (limit, limit))


def is_small() -> bool:
    """Return False if this process has come near to its limits: half of its memory, or an hour of processor time."""
    if sys.platform == "win32":
        return True
    import resource

    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return (limit == resource.RLIM_INFINITY or peak < limit // 2) and time.process_time() < _REUSED_SECONDS


def end_with_parent(parent: int) -> None:
    """Make this process end when its parent ends, even if it is busy in native code or stopped.

    On Linux the kernel does so. On macOS a thread checks once a second. On Windows a process keeps the id of an ended
    parent, so the end of standard input must be watched instead.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    elif sys.platform != "win32":
        threading.Thread(target=_watch, args=(parent,), name="voxframe-parent", daemon=True).start()
    if sys.platform != "win32" and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)
