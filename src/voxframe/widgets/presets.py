"""Presets: options of jobs under a name, in a file of voxframe's data directory. Nothing secret is among them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxframe import settings
from voxframe.corpus.store import write_atomic
from voxframe.errors import CorpusError, OptionError
from voxframe.options import FIELDS

#: They are not kept: one is a secret, and the others are of no use without it.
NOT_KEPT = tuple(name for name in FIELDS if name.startswith("webhook_"))


class Presets:
    """Presets in a file.

    Args:
        path: The file; None is `presets.json` in the data directory (`VOXFRAME_DATA_DIR`).
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = settings.resolve().data_dir / "presets.json" if path is None else path

    def all(self) -> dict[str, dict[str, Any]]:
        """Options by name of the preset.

        Raises:
            CorpusError: The file cannot be read.
        """
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return {str(name): dict(options) for name, options in sorted(found.items())}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as e:
            raise CorpusError(f"presets in {str(self.path)!r} cannot be read ({e}); mend or remove that file") from None

    def save(self, name: str, options: Mapping[str, Any]) -> None:
        """Keep options under a name; those of webhooks are left out.

        Raises:
            OptionError: The name is empty.
            CorpusError: The file cannot be read or written.
        """
        if not name.strip():
            raise OptionError("a preset needs a name")
        kept = {option: value for option, value in options.items() if option not in NOT_KEPT}
        self._write(self.all() | {name.strip(): kept})

    def remove(self, name: str) -> None:
        """Forget a preset.

        Raises:
            OptionError: There is none of that name.
            CorpusError: The file cannot be read or written.
        """
        self.of(name)
        self._write({known: options for known, options in self.all().items() if known != name})

    def of(self, name: str) -> dict[str, Any]:
        """The options of a preset.

        Raises:
            OptionError: There is none of that name.
            CorpusError: The file cannot be read.
        """
        presets = self.all()
        if name not in presets:
            raise OptionError(f"there is no preset {name!r}; there is {', '.join(presets) or 'none yet'}")
        return presets[name]

    def _write(self, presets: Mapping[str, Any]) -> None:
        text = json.dumps(presets, indent=1, ensure_ascii=False).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path, lambda file: file.write(text), durable=False)
        except OSError as e:
            raise CorpusError(f"presets in {str(self.path)!r} cannot be written: {e.strerror or e}") from None
