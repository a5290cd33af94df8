"""Shared fixtures: folders of real material, and an option to fail on skipped tests."""

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import psutil
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from voxframe import models
from voxframe.errors import ModelError
from voxframe.models.catalog import MODELS

#: Tests skip with this in their reason where a folder of real material is not given.
_FOLDERS = ("VOXFRAME_TEST_AUDIO", "VOXFRAME_TEST_PAYLOADS")


#: Tests in a browser need packages of the extra `long`.
collect_ignore = [] if find_spec("playwright") else ["browser"]


hypothesis.settings.register_profile(
    "loaded machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("loaded machine")


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


@pytest.fixture(scope="session")
def model_folder() -> Callable[[str], Path]:
    """Folder of a real model by its name, downloaded once into the cache that all runs share."""
    cache = models.cache_dir()  # as it is now: tests may set another one

    def folder(name: str) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(models.CACHE_VARIABLE, str(cache))
            try:
                return models.find(name)
            except ModelError as error:
                pytest.skip(str(error))

    return folder


#: Packages with plugins of voxframe.
_PLUGINS = Path(__file__).parent / "parrot"
#: Variable with the process id of the run, which servers that commands start inherit.
_RUN = "VOXFRAME_TEST_RUN"


def pytest_configure(config: pytest.Config) -> None:
    """Give the run its own data directory and one thread per process, and restore the handling of Ctrl-C."""
    gc.disable()  # until the tests are collected: nothing that is imported becomes garbage
    os.environ.setdefault(_RUN, str(os.getpid()))
    os.environ.setdefault("VOXFRAME_WRITER", "off")  # the same results whether or not its model is on this machine
    # Another package's engine, here and in the servers that tests start.
    sys.path.append(str(_PLUGINS))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_PLUGINS), os.environ.get("PYTHONPATH"))))
    # Several processes run tests. With a thread for each core in each, OpenBLAS spins more than it computes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported
    if "VOXFRAME_DATA_DIR" not in os.environ:  # worker processes inherit it
        os.environ["VOXFRAME_DATA_DIR"] = folder = tempfile.mkdtemp(prefix="voxframe-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    # Modules are compiled once, not in every process that tests start, whatever the environment says.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # A shell starts what it runs in the background with Ctrl-C ignored; tests of Ctrl-C need it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m long`, do not import files without a long test; each process would spend seconds on that."""
    is_file = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if config.option.markexpr != "long" or not is_file or collection_path.parent.name == "browser":
        return None
    return b"mark.long" not in collection_path.read_bytes() or None


def pytest_collection_finish() -> None:
    """Leave the modules and tests out of all later collections of garbage, which take less time then."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Show the warnings of long tests instead of failing: browsers, Spark and Dask give some that are not ours."""
    shown = ("default", "ignore::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.filterwarnings(*shown), append=False)


@pytest.fixture(autouse=True)
def _no_colors_assigned() -> None:
    """Forget which colours people and terms have, which is kept per process."""
    if colors := sys.modules.get("voxframe.colors"):
        colors.registry.clear()
        colors.recordings.clear()
        colors.sources.clear()


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_open() -> Iterator[None]:
    """Collect what a file of tests left open, so that the warning fails its last test and no test of another file."""
    yield
    gc.collect()
    gc.freeze()  # the next collection takes less time without what is alive now


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    """Close the figures of each test: pyplot keeps them, and warns from twenty on."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Download the models once, before the first test: several processes run tests, and any test may need them.

    Without them (`VOXFRAME_OFFLINE=1`), tests that cannot do without are skipped or fail.
    """
    if not hasattr(session.config, "workerinput"):
        with contextlib.suppress(ModelError):
            models.ensure(*(name for name in MODELS if name != models.WRITER))  # that has 1.1 GB


class _BrowserTogether(LoadFileScheduling):
    """Distribute tests by file, but run the browser tests in two processes: those of the player, and the others.

    JupyterLab, Voila and Chromium then start twice instead of once per file. As the largest groups, they are begun
    first.
    """

    def _split_scope(self, nodeid: str) -> str:
        if not nodeid.startswith("tests/browser/"):
            return super()._split_scope(nodeid)
        return "tests/browser/test_widgets" if nodeid.startswith("tests/browser/test_widgets") else "tests/browser"


@pytest.hookimpl(optionalhook=True)  # without xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Use the distribution above in place of `--dist loadfile`."""
    return _BrowserTogether(config, log) if config.getvalue("dist") == "loadfile" else None


def _left_servers() -> list[psutil.Process]:
    """Return the servers that commands of this run started and no test stopped."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "--shared-for" in process.cmdline() and process.environ().get(_RUN) == str(os.getpid()):
                found.append(process)
    return found


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Stop the server of commands in the data directory of the run. Fail if a test left another one running.

    With VOXFRAME_NO_SKIPS=1, also fail if a test was skipped for any reason but a missing folder.
    """
    gc.unfreeze()  # extension modules report at exit what was not collected
    usual = str(Path(os.environ["VOXFRAME_DATA_DIR"]) / "service")
    left = _left_servers()
    for process in left:
        arguments = process.cmdline()
        process.terminate()
        if usual not in arguments:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            sys.stderr.write(f"\na test left a server running, use tests.embedded.shared_server_stopped: {arguments}\n")
    psutil.wait_procs(left, timeout=10)
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
