"""What to do about a failure, in words of this command.

The engine's hints speak to every surface alike; somebody at a shell is helped more by a line that can be typed.
"""

from __future__ import annotations

from typing import Any

#: Digits of a version that are shown; six are enough to name it.
DIGITS = 12


def told(error: dict[str, Any], home: str | None = None, run: str | None = None) -> dict[str, Any]:
    """The failure with the hint that fits the command line.

    `home` is what ``--home`` named, to be named again; `run` the run that failed.
    """
    code = error.get("code")
    if code == "suspended":
        hint = _waiting(error, home)
    elif code in ("cancelled", "unknown_outcome") and run is not None:
        hint = f"`{again(home, 'runs', 'show', run)}` says step by step what was done"
        if code == "unknown_outcome":
            hint += f"; when the cause is mended, `{again(home, 'runs', 'resume', run)}` goes on"
    else:
        hint = _hint(error)
    return error if hint is None else {**error, "hint": hint}


def _waiting(error: dict[str, Any], home: str | None) -> str | None:
    """The two commands by which a run goes on."""
    details = error.get("details") or {}
    if not details.get("approval") or not details.get("run"):
        return None
    return (
        f"`{again(home, 'approvals', 'answer', details['approval'], 'once')}` shows the question and allows the call (or say no); "
        f"then `{again(home, 'runs', 'resume', details['run'])}` goes on"
    )


def again(home: str | None, *words: str) -> str:
    """A command that can be typed as it stands."""
    import shlex

    return shlex.join(["albert", *words, *(["--home", home] if home is not None else [])])


def _hint(error: dict[str, Any]) -> str | None:
    code, hint = error.get("code"), error.get("hint")
    details = error.get("details") or {}
    name, last = error.get("tool"), str(details.get("last") or "")[:DIGITS]
    if code == "unknown_tool" and last:
        if details.get("removed"):
            return f"its versions are kept: `albert show {name} --version {last}` shows the last one, and lists them"
        return f"`albert show {name} --version {last}` lists its versions; six digits are enough"
    if code == "unknown_tool" and (hint or "").startswith("`list`"):
        return "`albert list` says what there is, `albert search TEXT` finds some of it"
    if code == "not_found" and not hint and "there is nothing at " in str(error.get("message")):
        return "paths are relative to the workspace: `albert run list_directory path=.` lists it"
    return None
