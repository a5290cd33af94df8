"""A language model on this machine: llama.cpp (package `xllamacpp`) in a child process, reached on loopback.

The child starts with the first request, ends after five minutes without one, and with this process. It has a key of its
own, so that nobody else on the machine can use it. By default, the model is Qwen2.5-Coder-1.5B-Instruct in 4 bits
(`voxframe models get writer`), which takes 1.5 GB of memory; any other GGUF file can be given.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from voxframe import models
from voxframe.errors import MissingExtraError, ModelError, SettingsError
from voxframe.settings import Secret
from voxframe_engine.answers import ModelFailed, Report, unreported
from voxframe_engine.answers.chat import ChatModel, ModelReply

_log = logging.getLogger("voxframe_server")
#: Environment variable with the path of a GGUF file, or "off".
VARIABLE = "VOXFRAME_WRITER"
OFF = "off"
WINDOW = 4096  # tokens; each takes 28 kB of memory with the default model
_IDLE_S = 300.0


class LocalModel:
    """A GGUF model in a child process. Safe to use from several threads; requests are served one after another.

    Args:
        file: The GGUF file. None: that of the model `writer`, which is verified when it is loaded.
    """

    def __init__(self, file: Path | None = None, idle_s: float = _IDLE_S) -> None:
        self._file = file
        self.name = models.WRITER if file is None else file.stem
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._chat: ChatModel | None = None
        self._users = 0
        self._timer: threading.Timer | None = None
        # Linux ends the child when the thread that started it ends, and requests and jobs have threads that end.
        self._starter = ThreadPoolExecutor(1, "voxframe-writer")

    def ask(self, system: str, request: str, size: int, temperature: float, report: Report = unreported) -> ModelReply:
        """Request one answer of at most `size` tokens; see `ChatModel.ask`. Start the child if it does not run."""
        with self._running() as chat:
            return chat.ask(system, request, size, temperature, report)

    def close(self) -> None:
        """End the child, also while it loads the model."""
        if (child := self._child) is not None:
            child.kill()
        with self._lock:
            self._end()

    @property
    def pid(self) -> int | None:
        """Process id of the child; None if it does not run."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    @contextmanager
    def _running(self) -> Iterator[ChatModel]:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self.pid is None or self._chat is None:
                self._starter.submit(self._start).result()
            self._users += 1
            chat = self._chat
        assert chat is not None
        try:
            yield chat
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._timer = threading.Timer(self._idle_s, self._end_if_idle)
                    self._timer.daemon = True
                    self._timer.start()

    def _end_if_idle(self) -> None:
        with self._lock:
            if not self._users:
                self._end()

    def _start(self) -> None:
        self._end()
        try:
            file = self._file or next(models.find(models.WRITER, download=False).glob("*.gguf"))
        except ModelError as error:
            raise ModelFailed(500, str(error)) from None
        key = secrets.token_hex(24)
        self._child = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", "voxframe_engine.answers.writer_process", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with suppress(BrokenPipeError):  # it ended at once; see below
            self._child.stdin.write(json.dumps({"file": str(file), "key": key, "window": WINDOW}) + "\n")
            self._child.stdin.flush()
        line = self._child.stdout.readline()
        answer = json.loads(line) if line else {"error": f"its process ended with status {self._child.wait()}"}
        if "url" not in answer:
            self._end()
            raise ModelFailed(500, f"the local writer {file.name} cannot be loaded: {answer['error']}")
        _log.info("the local writer %s has started", self.name)
        # A repetition is less likely with a small penalty; with a larger one, names and numbers are avoided.
        fields = {"return_progress": True, "cache_prompt": True, "repeat_penalty": 1.05}
        self._chat = ChatModel(f"{answer['url']}/v1", self.name, Secret(key), fields)

    def _end(self) -> None:
        if self._child is None:
            return
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._child = self._chat = None


def find(setting: str | None = None) -> LocalModel | None:
    """Return the local writer: that of a setting, else the model `writer` if it is on this machine.

    Args:
        setting: Path of a GGUF file, or "off". None (default): VOXFRAME_WRITER.
    """
    setting = setting or os.environ.get(VARIABLE, "").strip() or None
    if setting == OFF:
        return None
    if setting is not None:
        file = Path(setting).expanduser().absolute()
        if not file.is_file():
            raise SettingsError(
                f"the model of the local writer {setting!r} is not a file; give the path of a GGUF file with --writer "
                f"or {VARIABLE}, or {OFF!r}"
            )
        if find_spec("xllamacpp") is None:
            raise MissingExtraError("writer", "The local writer")
        return LocalModel(file)
    if not models.may_be_present(models.WRITER):
        return None
    if find_spec("xllamacpp") is None:
        _log.warning('the model of the local writer is here, but not its runtime: pip install "voxframe[writer]"')
        return None
    return LocalModel()
