"""Child process of the local writer: serves a GGUF model on loopback with llama.cpp.

Command line: `python -P -m voxframe_engine.answers.writer_process PARENT_PID`. It reads one JSON line from standard
input, `{"file": path, "key": key, "window": tokens}`, and writes one to standard output, `{"url": url}` or
`{"error": reason}`. It ends when standard input ends, or with its parent.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from voxframe.settings import cores
from voxframe_engine.child_process import end_with_parent

_BATCH = 256  # tokens that are read at once; progress is reported, and a request can be cancelled, after each


def main() -> int:
    """Serve the model until standard input ends."""
    end_with_parent(int(sys.argv[1]))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be read as messages
    task = json.loads(sys.stdin.readline())
    try:
        server = _serve(task["file"], task["key"], task["window"])
        answer = {"url": server.listening_address}
    except Exception as error:  # noqa: BLE001 - every error must be reported to the parent
        answer = {"error": str(error) or type(error).__name__}
    out.write(json.dumps(answer) + "\n")
    out.flush()
    if "url" in answer:
        sys.stdin.read()
    return 0


def _serve(file: str, key: str, window: int) -> Any:
    import xllamacpp

    if hasattr(os, "nice"):
        os.nice(5)  # streams and requests have priority
    settings = xllamacpp.CommonParams()
    settings.model.path = file
    settings.n_ctx, settings.n_parallel = window, 1
    settings.n_batch = settings.n_ubatch = _BATCH
    for threads in (settings.cpuparams, settings.cpuparams_batch):
        threads.n_threads, threads.poll = cores(), 0  # a waiting thread sleeps: other work may have the core
    # Without a memory-mapped file: weights are rearranged when they are loaded, and would be in memory twice.
    settings.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
    settings.port, settings.api_keys = 0, [key]
    settings.cache_ram_mib, settings.warmup, settings.ui = 0, False, False
    settings.endpoint_slots, settings.verbosity = False, 0
    return xllamacpp.Server(settings)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # without waiting for threads of the library
