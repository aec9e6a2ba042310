"""Rules with numbers: the size of files, the time of a call, and calls per hour. The lowest number of all rules applies."""

from __future__ import annotations

import math
from collections.abc import Iterator

from albert_tools.engine.model.bounds import MAX_READ, MAX_TIMEOUT_SECONDS, MAX_WRITE
from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.limits import MiB
from albert_tools.engine.policy.layers import Layer, sections_of, views
from albert_tools.engine.policy.rule_kind import FILE_USES, Examined, Finding, NumberKey, RuleKind
from albert_tools.engine.policy.shipped import MAX_FILE_SIZE_MB

#: The largest size that a rule can set, in MiB. No tool reads larger files.
_MOST_MB = MAX_READ // MiB
#: The most calls per hour that a rule can set. A larger number would not limit any tool.
_MOST_CALLS = 1_000_000

#: The rate limit window of all calls of all tools.
ALL = "all"

SIZE = NumberKey(
    "max_file_size_mb",
    float,
    _MOST_MB,
    "2",
    f"MiB of the largest file: at most {_MOST_MB:,} to read as bytes, {MAX_WRITE // MiB} to read as text or to write; "
    f"{MAX_FILE_SIZE_MB:g} by default; not of what is only moved or deleted, nor of commands",
    least=0,
)
TIMEOUT = NumberKey(
    "timeout_seconds",
    float,
    MAX_TIMEOUT_SECONDS,
    "20",
    "seconds that a call may take; only lower than the tool's own limit",
    above=0,
)
RATE = NumberKey(
    "rate_limit_per_hour",
    int,
    _MOST_CALLS,
    "200",
    "calls within any hour: of the tool, or of all tools of the category together; at the top of the file, of all tools together",
    least=1,
)


def rate_limits(layers: tuple[Layer, ...], definition: ToolDefinition) -> dict[str, int]:
    """The rate limit windows that count a call, each with its calls per hour: ``{"tool:write_file": 100, …}``."""
    limits: dict[str, int] = {}
    own = getattr(definition, "rate_limit", None)
    if own is not None:
        limits[f"tool:{definition.name}"] = own
    for view in views(layers, definition):
        for layer, place, section in sections_of(layers, view):
            rate = section.get(RATE.name)
            if rate is not None:
                windows = {
                    layer.place.rstrip("."): ALL,
                    f"{layer.place}tools.{definition.name}": f"tool:{definition.name}",
                }
                window = windows.get(place, f"category:{view.category}")
                limits[window] = min(rate, limits.get(window, rate))
    return limits


def _lint_rate(examined: Examined) -> Iterator[Finding]:
    """Find rate limits without effect: a lower limit counts the same calls."""
    rate = RATE.of(examined.section)
    if rate is None:
        return
    for rule, lower in _other_rates(examined):
        if lower < rate:
            yield f"{examined.place}.{RATE.name}", f"{rate:,} calls are never reached: {rule} says {lower:,}"
            return


def _lint_timeout(examined: Examined) -> Iterator[Finding]:
    """Find timeouts without effect: every tool of the section has a lower limit of its own."""
    seconds = TIMEOUT.of(examined.section)
    own = min(max((d.timeout for d in examined.tools), default=math.inf), examined.call_seconds)
    if seconds is not None and examined.tools and own <= seconds:
        yield (
            f"{examined.place}.{TIMEOUT.name}",
            f"{seconds:g} s are never reached: the limit is {own:g} s without this rule",
        )


def _lint(examined: Examined) -> Iterator[Finding]:
    yield from _lint_timeout(examined)
    yield from _lint_rate(examined)


def _other_rates(examined: Examined) -> Iterator[tuple[str, float]]:
    layer, group, name = examined.layer, examined.group, examined.name
    above = examined.layers.index(layer)
    for other in examined.layers[: above + 1]:
        if (rate := RATE.of(other.everywhere)) is not None:
            yield f"{other.place}{RATE.name}", rate
    for other in examined.layers[:above]:
        sections = other.tools if group == "tools" else other.categories
        rate = sections.get(name, {}).get(RATE.name)  # type: ignore[call-overload]
        if rate is not None:
            yield f"{other.place}{group}.{name}.{RATE.name}", rate
    for definition in examined.tools if group == "tools" else ():
        own = getattr(definition, "rate_limit", None)
        if own is not None:
            yield "the tool's own definition", own
        rate = layer.categories.get(definition.category, {}).get(RATE.name)  # type: ignore[arg-type]
        if rate is not None:
            yield f"{layer.place}categories.{definition.category}.{RATE.name}", rate


def _lint_size(examined: Examined) -> Iterator[Finding]:
    """Find sizes that limit no tool of the section, or that none of them can write."""
    size, most, place = SIZE.of(examined.section), MAX_WRITE // MiB, f"{examined.place}.{SIZE.name}"
    if size is None or not examined.tools:
        return
    if all("execute" in d.effects and FILE_USES.intersection(d.effects) for d in examined.tools):
        yield place, "it doesn't limit the files that a command writes"
    uses = [FILE_USES.intersection(d.declared.uses.values()) for d in examined.tools]
    # A move has no limit.
    if size > most and all("write" in use and "delete" not in use for use in uses):
        yield place, f"{size:g} MiB are never reached: at most {most} can be written"


SIZES = RuleKind((SIZE,), effects=FILE_USES, uses=FILE_USES, not_for="touches no files", lint=_lint_size)
TIMES_AND_RATES = RuleKind((TIMEOUT, RATE), for_composites=True, lint=_lint)
