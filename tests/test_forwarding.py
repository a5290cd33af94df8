"""Signatures and docstrings of methods that only pass on."""

import inspect

import pytest

from voxframe.client.client import Client
from voxframe.client.transcript import Transcript
from voxframe.client.transfers import RedactedAudio

TWINS = [
    (owner, name.removesuffix("_async"))
    for owner in (Client, RedactedAudio, Transcript)
    for name in vars(owner)
    if name.endswith("_async")
]


@pytest.mark.parametrize(("owner", "name"), TWINS)
def test_an_async_version_has_the_parameters_and_the_help_of_its_twin(owner: type, name: str) -> None:
    """An editor completes the same arguments for both, and both explain them."""
    twin, plain = getattr(owner, f"{name}_async"), getattr(owner, name)
    assert inspect.iscoroutinefunction(twin)
    assert list(inspect.signature(twin).parameters.values()) == list(inspect.signature(plain).parameters.values())
    assert inspect.getdoc(twin) == f"Async version of `{name}`.\n\n{inspect.getdoc(plain)}"


def test_there_are_async_versions() -> None:
    """Every call of the client that takes long has one."""
    assert len(TWINS) >= 12
