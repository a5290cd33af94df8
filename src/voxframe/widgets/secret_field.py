"""A field for a key: what is typed goes to the kernel by one message and is in no trait, so in no saved notebook."""

from __future__ import annotations

from typing import Any

import traitlets

from voxframe.errors import SettingsError
from voxframe.settings import Secret
from voxframe.widgets.base import ScriptedWidget, escaped


class SecretField(ScriptedWidget):
    """A field whose text is never shown, kept or saved.

    Attributes:
        title: What it is for.
        help: What it does, for screen readers and for who points at it.
        given (bool): Whether something was typed.
    """

    scripts = ("secret_field",)
    styles = ("fields",)

    help = traitlets.Unicode("").tag(sync=True)
    given = traitlets.Bool(False).tag(sync=True)

    def __init__(self, title: str, help: str = "") -> None:  # noqa: A002  as the trait
        super().__init__(title=title, help=help)
        self._secret: Secret | None = None
        self.on_msg(self._typed)

    @property
    def secret(self) -> Secret | None:
        """What was typed; None for nothing."""
        return self._secret

    def _still_html(self) -> str:
        """Its name alone."""
        return f"<p>{escaped(self.title)}</p>"

    def _typed(self, _: Any, message: Any, __: Any) -> None:
        text = message.get("text") if isinstance(message, dict) else None
        self.error, self._secret = "", None
        try:
            self._secret = Secret(text) if isinstance(text, str) and text.strip() else None
        except SettingsError as e:
            self.error = str(e)
        self.given = self._secret is not None
