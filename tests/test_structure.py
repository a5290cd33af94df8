"""Rules about the source as a whole that no other tool checks."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import voxframe

SOURCE = Path(voxframe.__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("voxframe", "voxframe_engine", "voxframe_server")
    for path in (SOURCE / package).rglob("*.py")
}


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of every module."""
    return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def imports(name: str) -> set[str]:
    """Return the modules of voxframe that a module imports anywhere, also lazily or for type checking."""
    found = set()
    for node in ast.walk(trees()[name]):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return (found & MODULES.keys()) - {name}


def cycles() -> list[set[str]]:
    """Return the groups of modules that import each other, directly or not."""
    edges = {name: imports(name) for name in MODULES}
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for target in edges[stack.pop()] - seen:
                seen.add(target)
                stack.append(target)
        reach[start] = seen
    groups = {frozenset({name} | {other for other in reach[name] if name in reach[other]}) for name in reach}
    return [set(group) for group in groups if len(group) > 1]


def test_import_cycles_are_small():
    """No more than three files import each other, counting lazy and type-only imports."""
    assert [sorted(group) for group in cycles() if len(group) > 3] == []


def test_class_names_are_unique():
    """Different classes have different names."""
    names = Counter(node.name for tree in trees().values() for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_class_inherits_to_share_code():
    """No class of the package is called a mixin."""
    classes = [node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert [name for name in classes if "Mixin" in name] == []


def test_no_constructor_takes_corrections_names_or_people():
    """A class of the corpus reads these from the catalog: no reader can be without them, or with outdated ones."""
    parameters = {
        f"{name}.{cls.name}": {arg.arg for arg in (*init.args.args, *init.args.kwonlyargs)}
        | set(re.findall(r"\w+", " ".join(ast.unparse(arg.annotation) for arg in init.args.args[1:] if arg.annotation)))
        for name, tree in trees().items()
        if name.startswith("voxframe.corpus")
        for cls in ast.walk(tree)
        if isinstance(cls, ast.ClassDef)
        for init in cls.body
        if isinstance(init, ast.FunctionDef) and init.name == "__init__"
    }
    banned = {"corrections", "names", "people", "edits", "speakers", "metadata"}
    banned |= {"Corrections", "NameLog", "EditLog", "SpeakerNames", "Speakers", "Metadata"}
    assert len(parameters) > 20
    assert {name: found & banned for name, found in parameters.items() if found & banned} == {}


def test_import_contracts_cover_every_module():
    """Every package and top-level module is named in the layers that import-linter checks."""
    contracts = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    layered = {name for layer in contracts[0]["layers"] for name in layer.split(" | ")}
    assert layered == {name.split(".")[1] for name in MODULES if name.startswith("voxframe.")}
