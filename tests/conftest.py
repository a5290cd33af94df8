"""What all tests share: folders of real material, and the rule that a skipped test can be made to fail the run."""

import os
import signal
from pathlib import Path

import pytest

#: Tests skip with this in their reason where a folder of real material is not given.
_FOLDERS = ("VOXFRAME_TEST_AUDIO", "VOXFRAME_TEST_PAYLOADS")


def _folder(name: str) -> Path:
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} names no folder")
    return Path(value)


@pytest.fixture(scope="session")
def audio_folder() -> Path:
    """Folder of real recordings with their reference transcripts."""
    return _folder("VOXFRAME_TEST_AUDIO")


@pytest.fixture(scope="session")
def payload_folder() -> Path:
    """Folder of example payloads of the interface."""
    return _folder("VOXFRAME_TEST_PAYLOADS")


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts what it runs in the background with Ctrl-C ignored; tests of Ctrl-C need it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With VOXFRAME_NO_SKIPS=1, a skip for any reason but a folder that is not there fails the run."""
    if os.environ.get("VOXFRAME_NO_SKIPS") != "1":
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # one of several processes, whose skips another one counts
        return
    skipped = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
    absent = [name for name in _FOLDERS if not os.environ.get(name)]
    unexcused = [reason for reason in skipped if not any(f"{name} names no folder" in reason for name in absent)]
    if unexcused:
        reporter.write_line(f"VOXFRAME_NO_SKIPS=1 and {len(unexcused)} tests were skipped:", red=True)
        for reason in unexcused:
            reporter.write_line(f"  {reason}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
