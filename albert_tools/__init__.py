"""Albert Tools: an agent writes new tools at run time, safely.

Names are loaded on first use, so that importing the package costs nothing: a worker's zygote and
``albert run`` live from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albert_tools.engine.model.failure import Failure as Failure
    from albert_tools.engine.model.primitive import primitive as primitive
    from albert_tools.engine.model.protocols import CallContext as CallContext
    from albert_tools.grammar.diagnostic import SourceError as SourceError

_PUBLIC = {
    "CallContext": "albert_tools.engine.model.protocols",
    "Failure": "albert_tools.engine.model.failure",
    "SourceError": "albert_tools.grammar.diagnostic",
    "primitive": "albert_tools.engine.model.primitive",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'albert_tools' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value
