"""The service, the home and its folders that the options ``--home`` and ``--workspace`` name. What they need loads late."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from albert_tools.service import ToolService
    from albert_tools.store.home import Home
    from albert_tools.store.places import Homes

_T = TypeVar("_T")


def homes_of(options: argparse.Namespace) -> Homes:
    """The folders of the home."""
    from albert_tools.store.places import Homes

    environ = dict(os.environ)
    if getattr(options, "home", None) is not None:
        environ["ALBERT_HOME"] = options.home
    return Homes.resolve(environ)


def home_of(options: argparse.Namespace) -> Home:
    """What the home stores."""
    from albert_tools.store.home import home_at

    return home_at(homes_of(options))


def open_service(options: argparse.Namespace, workspace: str | None = None, **settings: Any) -> ToolService:
    """The service of the workspace that the options name; by default that at `workspace`. For `settings` see `ToolService.open`."""
    from albert_tools.service import ToolService

    where = options.workspace if options.workspace is not None else workspace
    return ToolService.open(home=options.home, workspace=where, **settings)


def in_service(options: argparse.Namespace, work: Callable[[ToolService], Awaitable[_T]]) -> _T:
    """Open the service, and return the result of `work`."""
    import asyncio

    async def done() -> _T:
        async with open_service(options) as service:
            return await work(service)

    return asyncio.run(done())
