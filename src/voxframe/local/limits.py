"""What a process that works on somebody's media may take, so that a file made to break it breaks that process only."""

from __future__ import annotations

import os
import sys

_GB = 1 << 30
_CPU_HOURS = 24


def limit_this_process(*, memory_gb: float | None = None, whole_machine: bool = False) -> None:
    """Bound the memory and processor time of this process and of those it starts, where the system can.

    Memory is what the process writes to (Linux: RLIMIT_DATA; macOS has no such bound, Windows none of these). It leaves
    no core dump either, for that would hold the recording.

    Args:
        memory_gb: Gigabytes it may take; default: half of the machine's, and 4 at least.
        whole_machine: It may take all memory of the machine, and processor time on all of its cores.
    """
    if sys.platform == "win32":
        return
    import resource

    cores = os.cpu_count() or 1
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = max(4 * _GB, machine if whole_machine else machine // 2)
    if memory_gb is not None:
        memory = round(memory_gb * _GB)
    bounds = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_CPU: _CPU_HOURS * 3600 * (cores if whole_machine else 1),
        resource.RLIMIT_CORE: 0,
    }
    for kind, bound in bounds.items():
        hard = resource.getrlimit(kind)[1]
        if hard == resource.RLIM_INFINITY or bound < hard:
            resource.setrlimit(kind, (bound, bound))
