"""`voxframe completion`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab

_FILES = frozenset({"AUDIO", "FILE", "SOURCE", "TARGET"})


def completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the completion script of a shell.

    Args:
        parser: The parser of the whole command line.
        shell: "bash", "zsh" or "tcsh".

    Returns:
        Exit status.
    """
    for action in _actions(parser):
        if action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # what shtab looks for
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
