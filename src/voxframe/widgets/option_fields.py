"""The fields of a form for the options of a job: plain ipywidgets, one group at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from voxframe.settings import Secret
from voxframe.widgets import job_options
from voxframe.widgets.base import escaped
from voxframe.widgets.presets import NOT_KEPT
from voxframe.widgets.secret_field import SecretField

_WIDE = {"description_width": "220px"}  # the longest name


class OptionFields(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Every option of a job, with what it does.

    Attributes:
        fields: The field of each option, by its name.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.fields: dict[str, ipywidgets.Widget] = {}
        field_layout = ipywidgets.Layout(width="auto")
        help_layout = ipywidgets.Layout(width="auto", margin="2px 0 2px 4px")
        grid = ipywidgets.Layout(grid_template_columns="minmax(320px, 500px) minmax(150px, 1fr)", grid_gap="0 8px")
        pages = {}
        for group, options in job_options.GROUPS.items():
            children = []
            for name in options:
                option = job_options.shown(name)
                field = self.fields[name] = _field(option, field_layout)
                field.observe(lambda _: changed(), "given" if option.kind == "secret" else "value")
                children += [field, ipywidgets.HTML(_help(option), layout=help_layout)]
            pages[group] = ipywidgets.GridBox(children, layout=grid)
        self._groups = ipywidgets.ToggleButtons(
            options=list(pages), tooltips=[f"Options: {group}" for group in pages], style={"button_width": "auto"}
        )
        self._page = ipywidgets.Box([pages[self._groups.value]], layout=ipywidgets.Layout(display="block"))
        self._groups.observe(lambda change: setattr(self._page, "children", [pages[change["new"]]]), "value")
        super().__init__([self._groups, self._page])

    @property
    def options(self) -> dict[str, Any]:
        """The options, checked; without the secret one.

        Raises:
            OptionError: Something cannot be sent; all of it is named.
        """
        typed = {name: field.value for name, field in self.fields.items() if not isinstance(field, SecretField)}
        return job_options.checked(self._whole(typed))

    @property
    def secret(self) -> Secret | None:
        """The value of the header that notifications carry."""
        return self._secret_field.secret

    def fill(self, options: Mapping[str, Any]) -> None:
        """Set every field a preset may hold: those not in the options to what the service does without them."""
        for name, field in self.fields.items():
            if name not in NOT_KEPT:
                field.value = job_options.written(name, options.get(name))

    @property
    def _secret_field(self) -> SecretField:
        field = self.fields["webhook_auth_header_value"]
        assert isinstance(field, SecretField)
        return field

    def _whole(self, typed: dict[str, Any]) -> dict[str, Any]:
        """What is checked: the two parts of a header go together, and only here both are known."""
        secret = self.secret
        if secret is None:
            return typed
        return typed | {"webhook_auth_header_value": secret.reveal()}


def _field(option: job_options.Shown, layout: Any) -> ipywidgets.Widget:
    common = {"description": option.name, "tooltip": option.help, "style": _WIDE, "layout": layout}
    if option.kind == "flag":
        return ipywidgets.Checkbox(value=option.default, indent=True, **common)
    if option.kind == "choice":
        usual = f"default{f' ({option.default})' if option.default else ''}"
        return ipywidgets.Dropdown(options=[(usual, ""), *((c, c) for c in option.choices)], value="", **common)
    if option.kind == "choices":
        return ipywidgets.SelectMultiple(options=option.choices, rows=6, **common)
    if option.kind == "list":
        return ipywidgets.Textarea(rows=3, **common)
    if option.kind == "secret":
        field = SecretField(option.name, help=option.help)
        field.add_class("vf-option")
        return field
    usual = f"default: {option.default}" if option.default not in (None, "") else ""
    return ipywidgets.Text(placeholder=usual, **common)


def _help(option: job_options.Shown) -> str:
    return f'<span style="opacity:0.75;line-height:1.4;display:block">{escaped(option.help)}</span>'
