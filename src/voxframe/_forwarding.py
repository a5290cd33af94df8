"""Signature and docstring of a function for the methods that only pass on to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

_Parameters = ParamSpec("_Parameters")
_Owner = TypeVar("_Owner")
_Result = TypeVar("_Result")


def forwarded(
    target: Callable[Concatenate[Any, _Parameters], object],
) -> Callable[[Callable[Concatenate[_Owner, ...], _Result]], Callable[Concatenate[_Owner, _Parameters], _Result]]:
    """Give a method the parameters and the docstring of the function or method to which it passes them on.

    The first parameter of `target` is not copied, because the method fills it in. A docstring of the method stands
    before that of `target`.

    Example:
        >>> def count(words, by="speaker", *, top=10):
        ...     "Count the words."
        >>> class Accessor:
        ...     @forwarded(count)
        ...     def count(self, *args, **kwargs): ...
        >>> str(inspect.signature(Accessor().count)), Accessor.count.__doc__
        ("(by='speaker', *, top=10)", 'Count the words.')
    """

    def copied(
        method: Callable[Concatenate[_Owner, ...], _Result],
    ) -> Callable[Concatenate[_Owner, _Parameters], _Result]:
        signature = inspect.signature(method)
        parameters = [
            next(iter(signature.parameters.values())),
            *list(inspect.signature(target).parameters.values())[1:],
        ]
        vars(method)["__signature__"] = signature.replace(parameters=parameters)
        texts = [inspect.cleandoc(text) for text in (method.__doc__, target.__doc__) if text]
        method.__doc__ = "\n\n".join(texts)
        return method

    return copied


def of_part(
    part: str, method: Callable[Concatenate[Any, _Parameters], _Result]
) -> Callable[Concatenate[Any, _Parameters], _Result]:
    """Return a method that passes on to the same method of a part of its object, which is the attribute `part`."""

    @wraps(method)
    def passed_on(self: Any, *args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        result: _Result = getattr(getattr(self, part), method.__name__)(*args, **options)
        return result

    return cast("Callable[Concatenate[Any, _Parameters], _Result]", passed_on)
