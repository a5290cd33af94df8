"""A plugin for nbval that runs every notebook with a key in the environment and checks that the key appears nowhere.

    python -m pytest -p tests.notebooks.with_canary --nbval --nbval-sanitize-with tests/sanitize.cfg notebooks

The kernels use a service that requires a canary as its key. The plugin keeps everything that they send: outputs of
cells and states of widgets, which make up a saved notebook. It also keeps the result of `Widget.get_manager_state`, the
log at its most detailed level, and all files that notebooks and service write. The run fails if any of it has the key.
"""

import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest
from nbval.kernel import RunningKernel
from tests.notebooks.canary import CANARY, traces
from tests.server.conftest import Service

#: Run in each kernel before the notebook. The service was told of one port where it may notify somebody.
_BEFORE = """
import logging
logging.basicConfig(level=logging.DEBUG, filename={log!r})
from voxframe import webhooks
webhooks.listen.__defaults__ = ({port}, None, None)
"""
_AFTER = """
import ipywidgets, json
with open({path!r}, "a") as _file:
    _file.write(json.dumps(ipywidgets.Widget.get_manager_state(), default=repr))
"""


class WithCanary:
    """The service, the environment of the kernels, and the requests that they send."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.found, self.states = folder, ["nothing was run"], folder / "states.json"
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        allowed = ("--allow-origin", f"http://127.0.0.1:{port}")
        self.service = Service(folder / "service", *allowed, key=CANARY)
        startup = folder / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "before.py").write_text(_BEFORE.format(log=str(folder / "debug.log"), port=port))
        (folder / "tmp").mkdir()
        os.environ |= {
            "VOXFRAME_BASE_URL": self.service.url,
            "VOXFRAME_API_KEY": CANARY,
            "VOXFRAME_DATA_DIR": str(folder / "data"),
            "TMPDIR": str(folder / "tmp"),  # where notebooks make their folders
            "IPYTHONDIR": str(folder / "ipython"),
        }
        self._listen_in()

    def _listen_in(self) -> None:
        get, stop = RunningKernel.get_message, RunningKernel.stop

        def get_and_keep(kernel: RunningKernel, *how: Any, **more: Any) -> Any:
            message = get(kernel, *how, **more)
            with (self.folder / "messages.json").open("a") as file:
                file.write(json.dumps(message, default=repr) + "\n")
            return message

        def look_and_stop(kernel: RunningKernel) -> None:
            if kernel.is_alive():
                kernel.await_reply(kernel.execute_cell_input(_AFTER.format(path=str(self.states))), timeout=60)
            stop(kernel)

        RunningKernel.get_message, RunningKernel.stop = get_and_keep, look_and_stop

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop the service and search for the key."""
        self.service.stop()
        kept = {path.name for path in self.folder.rglob("*") if path.is_file()}
        lacking = {"messages.json", "states.json", "debug.log"} - kept
        self.found = [*traces(self.folder), *(f"{name} was not written" for name in sorted(lacking))]
        if self.found:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the files in which the key was found."""
        files = sum(path.is_file() for path in self.folder.rglob("*"))
        said = "; ".join(self.found) or f"nowhere in {files} files"
        terminalreporter.write_line(f"the key: {said}", red=bool(self.found))


def pytest_configure(config: pytest.Config) -> None:
    """Start the service and set the environment."""
    folder = tempfile.TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    config.pluginmanager.register(WithCanary(Path(folder.name)))
