"""`python -m tests.benchmarks NAME [ARGUMENTS]` runs the `main` of a benchmark; without a name, lists them."""

import ast
import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """Names of the modules here that have a `main`, and the first lines of their docstrings."""
    found = {}
    for path in sorted(FOLDER.glob("[!_]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def main(arguments: list[str]) -> int:
    """Run the benchmark that is named."""
    if arguments and arguments[0].isidentifier() and (FOLDER / f"{arguments[0]}.py").is_file():
        module = importlib.import_module(f"tests.benchmarks.{arguments[0]}")
        if hasattr(module, "main"):
            return module.main(arguments[1:]) or 0
    known = benchmarks()
    out = sys.stderr if arguments else sys.stdout
    if arguments:
        print(f"there is no benchmark {arguments[0]!r}; there are:", file=out)
    for name, purpose in known.items():
        print(f"{name:12} {purpose}", file=out)
    return 2 if arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
