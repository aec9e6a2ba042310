"""What makes one call dangerous beyond its effects: a host, a program or a command that somebody else can choose."""

from __future__ import annotations

import re
from collections.abc import Iterator

from albert_tools.engine.model.fixed_hosts import BEGINNING, fixed_hosts, host_of
from albert_tools.engine.model.manifest import PlannedCall, Value, alternatives_in, values_in
from albert_tools.engine.model.visible_text import visible
from albert_tools.engine.review.value_words import Words
from albert_tools.engine.shell.command_holes import loose_folders, loose_holes, loose_options

#: Environment variables that make programs load or run other code.
_LOADS_CODE = re.compile(
    r"(LD_|DYLD_|PYTHON|GIT_).*|NODE_OPTIONS|PATH|BASH_ENV|ENV|PERL5(OPT|LIB)|RUBYOPT|JAVA_TOOL_OPTIONS"
)


def call_warnings(call: PlannedCall, words: Words) -> Iterator[str]:
    """The warnings about one call, in words."""
    for name, use in call.uses.items():
        value = call.arguments.get(name)
        if value is None:
            continue
        if use == "url" and fixed_hosts(value) is None:
            yield _host(value, words)
        elif use in ("shell", "program"):
            yield from _not_fixed(value, use, words)
        elif use == "environment":
            yield from (text for text, loads in environment(value, words) if loads)
    for hole in loose_options(call):
        yield f"ANY OPTION: {words.alternative(hole.template, hole.value.data)} can be an option of {hole.command}"
    for hole in loose_folders(call):
        text = words.alternative(hole.template, hole.value.data)
        if hole.command:
            yield f"ANY PROGRAM: {text} is the folder in which `{visible(hole.command)}` starts"
        else:
            yield f"ANY FOLDER: {text} is the folder in which {visible(call.tool)} works"


def environment(value: Value, words: Words) -> Iterator[tuple[str, bool]]:
    """Each variable that a command gets, in words, and whether it can make the command load other code."""
    for one, data in alternatives_in(value):
        name, equals, rest = (
            one[0].partition("=") if isinstance(one, tuple) and one and isinstance(one[0], str) else ("", "", "")
        )
        if not equals:
            yield f"ANY ENVIRONMENT VARIABLE {words.alternative(one, data)}", True
        elif _LOADS_CODE.fullmatch(name) and isinstance(one, tuple):
            source = words.alternative((*([rest] if rest else []), *one[1:]), data)
            yield f"with code from {source} ({name})", True
        else:
            yield f"with {words.alternative(one, data)}", False


def _host(value: Value, words: Words) -> str:
    if not any(v.data for v in values_in(value)):
        return "THE HOST IS COMPUTED BY THE CODE AND NOT KNOWN HERE"
    for one, data in alternatives_in(value):
        if not isinstance(one, tuple) or not one or not isinstance(one[0], str) or host_of(one) is not None:
            continue
        if (met := BEGINNING.match(one[0])) and met.end() == len(one[0]) and len(one) > 1:
            return f"THE HOST IS NOT FIXED: {words.alternative(one[1:2], data)} can continue the host name"
    return "THE HOST IS NOT FIXED"


def _not_fixed(value: Value, use: str, words: Words) -> Iterator[str]:
    for hole in loose_holes(use, value):
        text = words.alternative(hole.template, hole.value.data)
        if hole.command is None:
            yield f"NOT QUOTED: {text} can contain any command"
        else:
            yield f"ANY PROGRAM: {text}" + (f" can change what `{visible(hole.command)}` does" if hole.command else "")
