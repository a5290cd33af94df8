"""One address, several methods: a 405 names all that it takes only where they are one route."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def route(path: str, **handlers: Callable[[Request], Any]) -> Route:
    """The route of an address.

    Args:
        path: The address.
        **handlers: A function of the request, async or not, by its method in lower case. HEAD goes with GET.

    Example:
        >>> sorted(route("/a", get=print, delete=print).methods)
        ['DELETE', 'GET', 'HEAD']
    """

    async def endpoint(request: Request) -> Response:
        handler = handlers["get" if request.method == "HEAD" else request.method.lower()]
        work = handler(request) if iscoroutinefunction(handler) else run_in_threadpool(handler, request)
        answer: Response = await work
        return answer

    return Route(path, endpoint, methods=list(handlers))
