import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import voxframe


def _run(code: str) -> str:
    """Return the output of a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_public_names_are_sorted_and_all_there() -> None:
    """Every name in `__all__` exists, is listed by dir(), and occurs once, in sorted order."""
    assert voxframe.__all__ == sorted(set(voxframe.__all__))
    assert [name for name in voxframe.__all__ if not hasattr(voxframe, name)] == []
    assert set(voxframe.__all__) <= set(dir(voxframe))
    assert set(voxframe.__all__) <= set(voxframe.__dict__)  # once used, they cost nothing
    assert voxframe.__version__.count(".") == 2


def test_importing_costs_little() -> None:
    """`import voxframe` does not import pandas or another heavy package."""
    loaded = _run("import sys; before = set(sys.modules); import voxframe; print(*(set(sys.modules) - before))").split()
    heavy = {"pandas", "numpy", "pyarrow", "matplotlib", "requests", "IPython", "starlette", "av", "tqdm"}
    assert heavy.isdisjoint(loaded)


@pytest.mark.parametrize(
    "first",
    [
        "import pandas, voxframe",
        "import voxframe, pandas; voxframe.connect",
        "import voxframe; voxframe.load_words([])",
        "import voxframe; voxframe.Corpus('none').table('words')",
    ],
)
def test_the_accessor_is_there(first: str) -> None:
    """`df.vox` exists if pandas was imported first, after a name of voxframe was used, and after the first load."""
    assert _run(f"{first}; import pandas; print(hasattr(pandas.DataFrame(), 'vox'))") == "True"


def test_a_wrong_name_is_an_attribute_error() -> None:
    """A name that does not exist raises AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="'voxframe' has no attribute 'load_word'"):
        voxframe.load_word  # noqa: B018  reading it is the test


def test_the_sample_is_found() -> None:
    """The sample recording is a FLAC file; the error for another name lists the samples."""
    assert voxframe.sample().read_bytes()[:4] == b"fLaC"
    assert voxframe.sample("interview") == voxframe.sample()
    for wrong in ("nope", "../data/interview", f"..{os.sep}x"):
        with pytest.raises(ValueError, match="available: call, interview, meeting, panel"):
            voxframe.sample(wrong)


def test_the_wheel_carries_the_sample() -> None:
    """The wheel contains the recording at the place where `sample` looks first."""
    project = Path(__file__).parents[1]
    packed = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in packed["force-include"].items():
        assert (project / source).read_bytes() == voxframe.sample(Path(target).stem).read_bytes()
        assert Path(target).parent == Path("voxframe/data")
    assert "data/interview.flac" in packed["force-include"]
