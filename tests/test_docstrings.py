import doctest
import importlib
import inspect
import pkgutil
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest

import voxframe
import voxframe.analysis
import voxframe_engine
import voxframe_server

mpl.use("agg")

_MODULES = sorted(
    module.name
    for package in (voxframe, voxframe_engine, voxframe_server)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith(("__main__", "audio_server"))  # importing these runs them
)


@pytest.mark.filterwarnings("ignore:there is no corpus in")
@pytest.mark.parametrize("name", _MODULES)
def test_examples_do_what_they_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example in a docstring gives the output that is shown."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # else the directories of examples would stay
    failed, _ = doctest.testmod(importlib.import_module(name), verbose=False)
    assert failed == 0


@pytest.mark.parametrize("name", [name for name in voxframe.__all__ if name.startswith("load_")])
def test_every_loader_has_an_example_and_its_dtypes(name: str) -> None:
    """The docstring of a loader has an example and the dtypes of the columns."""
    text = getattr(voxframe, name).__doc__
    assert ">>>" in text
    assert "Returns:" in text
    assert "int64" in text or "float64" in text


#: Functions of `voxframe.analysis` that return other rows, not a measure.
_NO_MEASURES = {"annotate", "find_words", "split_spans", "turns"}


@pytest.mark.parametrize("name", sorted({*voxframe.analysis.__all__} - _NO_MEASURES))
def test_every_measure_says_what_it_is(name: str) -> None:
    """The docstring of a measure has its definition, unit, denominator and source, and an example."""
    told = getattr(voxframe.analysis, name).__doc__
    parts = (
        r"Definition|^    [`\w]+ is ",
        r"Units?:\s|units are|in the unit|Measures:",
        "Denominator|Measures:",
        r"Source:\s",
        "Example:",
    )
    for part in parts:
        assert re.search(part, told, re.IGNORECASE | re.MULTILINE), part


def _public_functions() -> list[tuple[str, Callable[..., object]]]:
    """Return the public functions, and the public methods of public classes, with their names."""
    owners = [voxframe, *(value for value in map(voxframe.__getattr__, voxframe.__all__) if inspect.ismodule(value))]
    members = [
        (f"{owner.__name__}.{name}", getattr(owner, name)) for owner in owners for name in getattr(owner, "__all__", ())
    ]
    classes = [(name, value) for name, value in members if inspect.isclass(value)]
    methods = [
        (f"{name}.{method}", function)
        for name, value in classes
        for method, function in vars(value).items()
        if inspect.isfunction(function) and not method.startswith("_")
    ]
    return [(name, value) for name, value in members if inspect.isfunction(value)] + methods


@pytest.mark.parametrize(("name", "function"), _public_functions())
def test_every_parameter_of_a_public_function_is_described(name: str, function: Callable[..., object]) -> None:
    """A public docstring that has `Args:` describes every parameter."""
    text = inspect.getdoc(function) or ""
    if "Args:" not in text:
        return
    parameters = [p for p in inspect.signature(function).parameters if p != "self"]
    missing = [p for p in parameters if not re.search(rf"^    \*{{0,2}}(.*\b, )?\*{{0,2}}{p}\b.*:", text, re.MULTILINE)]
    assert not missing, name
