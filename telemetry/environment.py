"""Creates the observer that the environment configures: ``ALBERT_TELEMETRY=json``, ``=otel`` or ``=/path/calls.jsonl``."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.telemetry import Observer
from albert_tools.telemetry.events import StructlogObserver
from albert_tools.telemetry.spans import OpenTelemetryObserver

VARIABLE = "ALBERT_TELEMETRY"
OPENTELEMETRY = "otel"
#: What the errors of the system mean here.
_WHY = {errno.ELOOP: "it is a link", errno.ENXIO: "it is a pipe that nobody reads"}
_HINT = (
    f"{VARIABLE}=json writes to standard error, {VARIABLE}=/path/calls.jsonl to a file, and "
    f"{VARIABLE}={OPENTELEMETRY} to OpenTelemetry"
)


def from_environment(environ: Mapping[str, str]) -> Observer | None:
    """The observer for the value of `ALBERT_TELEMETRY`; None if it is not set.

    A value with a slash is the path of a file, which is created if it does not exist. `~` is the home folder.

    Raises:
        Failure: `invalid_arguments` if the value is none of json, otel and a path, `io_error` if the file can't be opened,
            `not_found` without the extra ``otel``.
    """
    wanted = environ.get(VARIABLE, "").strip()
    if not wanted:
        return None
    if wanted == "json":
        return StructlogObserver()
    if wanted == OPENTELEMETRY:
        try:
            return OpenTelemetryObserver()
        except ImportError as error:
            raise Failure("not_found", f"{VARIABLE}: {error}") from error
    if "/" not in wanted:
        raise Failure(
            "invalid_arguments",
            f"{VARIABLE} is {brief(repr(wanted), 60)}, which is none of json, otel and a path",
            hint=_HINT,
        )
    path = os.path.expanduser(wanted)
    try:
        return StructlogObserver(path=path)
    except OSError as error:
        why = _WHY.get(error.errno or 0) or error.strerror or str(error)
    except ValueError:
        why = "a path cannot contain a NUL character"
    raise Failure("io_error", f"{VARIABLE}: {brief(repr(path), 200)} can't be opened: {why}", hint=_HINT)
