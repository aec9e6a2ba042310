"""Which lines of some texts have a match: four ways, one answer.

Plain text is looked for as it is. Anything else is for ripgrep where it is installed, or for RE2 (the extra `patterns`); each
gets the pattern as `patterns` spells it for it. What can't be spelled for both is for RE2 alone, and refused without it: whether a
pattern is taken may depend on what is installed, what it finds never does.

ripgrep opens no file. It gets the texts on its standard input, which we have read in the workspace as the rules let us, and
answers with numbers of lines. So there is no link, ignore file, configuration or preprocessor that could lead it anywhere. It has
no environment, and is killed when the call is over.

A text is UTF-8. Its lines end with ``\\n``, which is no part of them; what is behind the last one is a line if it isn't empty.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from albert_tools.builtins.files.globs import MAX_PATTERN
from albert_tools.builtins.files.regex_subset import SPECIAL, read
from albert_tools.engine.model.argument_errors import refused_argument
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.line_patterns import advice
from albert_tools.engine.model.messages import install_command

if TYPE_CHECKING:
    import subprocess

#: Bytes that RE2 may use for a pattern; one that needs more is refused.
_RE2_MEMORY = 8 << 20
#: Bytes of texts that ripgrep is started for, and texts.
_BATCH_BYTES = 8 << 20
_BATCH_TEXTS = 4_000
#: Seconds between two looks whether the call is over.
_LOOK = 0.1
#: Seconds that ripgrep may take for one batch; it takes some hundredths.
_PATIENCE = 60

#: Asked now and then, and may raise.
Going = Callable[[], object]


class Searcher(Protocol):
    """Finds lines. `batch_bytes` and `batch_texts` are how much it is best given at once."""

    batch_bytes: int
    batch_texts: int

    def lines(self, texts: Sequence[bytes], most: int, going: Going) -> list[list[int]]:
        """For each text the numbers of its lines that have a match, from 1, in order; `most` in all, the first of them.

        Raises:
            Failure: what `going` raises; `invalid_arguments`: the pattern is more than the engine takes.
        """


def searcher(pattern: str, ignore_case: bool, workspace: str, ripgrep: str | None = None) -> Searcher:
    """What finds the lines that have a match of `pattern` (RE2's syntax).

    `workspace` is the folder whose programs are never run; `ripgrep` is the program to use, for those who know, else it is looked
    for.

    Raises:
        Failure: `invalid_arguments`: it is no pattern, or one that needs what is not installed.
    """
    if len(pattern) > MAX_PATTERN:
        raise invalid(f"it has {len(pattern):,} characters, more than {MAX_PATTERN:,}")
    if any("\ud800" <= c <= "\udfff" for c in pattern):
        raise invalid("it holds half a surrogate pair, which no text does")
    spelled = read(pattern, ignore_case)
    if not ignore_case and SPECIAL.isdisjoint(pattern):
        return _Plain(pattern.encode())
    program = ripgrep if ripgrep is not None else find_ripgrep(workspace)
    if spelled is not None and program:
        return _Ripgrep(program, spelled.ripgrep, lambda: _re2(pattern, spelled.re2, ignore_case, by_line=False))
    return _re2(pattern, pattern if spelled is None else spelled.re2, ignore_case, by_line=spelled is None)


def invalid(why: str, hint: str | None = None) -> Failure:
    """The failure that a pattern is none."""
    return refused_argument("pattern", why, hint=hint, said=f"pattern: {why}")


class _Plain:
    """Looks for a text as it is."""

    batch_bytes = batch_texts = 1

    def __init__(self, wanted: bytes) -> None:
        self._wanted = wanted

    def lines(self, texts: Sequence[bytes], most: int, going: Going) -> list[list[int]]:
        if not self._wanted:
            return _hits(texts, most, lambda text, at: at if at < len(text) else -1, going)
        return _hits(texts, most, lambda text, at: text.find(self._wanted, at), going)


class _Re2:
    """Searches whole texts; the pattern is one that matches within lines only."""

    batch_bytes = batch_texts = 1

    def __init__(self, compiled: Any) -> None:
        self._search = compiled.search

    def lines(self, texts: Sequence[bytes], most: int, going: Going) -> list[list[int]]:
        def find(text: bytes, at: int) -> int:
            found = self._search(text, at)
            return -1 if found is None else int(found.start())

        return _hits(texts, most, find, going)


class _Re2Lines:
    """Searches line by line, for patterns of which nobody knows what they match."""

    batch_bytes = batch_texts = 1

    def __init__(self, compiled: Any) -> None:
        self._search = compiled.search

    def lines(self, texts: Sequence[bytes], most: int, going: Going) -> list[list[int]]:
        found: list[list[int]] = []
        for text in texts:
            here: list[int] = []
            for n, line in enumerate(split(text), 1):
                if most <= 0:
                    break
                if n % 10_000 == 0:
                    going()
                if self._search(line) is not None:
                    here.append(n)
                    most -= 1
            found.append(here)
        return found


class _Ripgrep:
    """Lets ripgrep search, which is given the texts and no path."""

    batch_bytes = _BATCH_BYTES
    batch_texts = _BATCH_TEXTS

    def __init__(self, program: str, pattern: str, instead: Callable[[], Searcher]) -> None:
        self._command = [program, *_FLAGS, "--regexp", pattern]
        self._instead = instead

    def lines(self, texts: Sequence[bytes], most: int, going: Going) -> list[list[int]]:
        pieces: list[bytes] = []
        ends: list[int] = []
        count = 0
        for text in texts:
            pieces.append(text)
            count += text.count(b"\n")
            if text and not text.endswith(b"\n"):
                pieces.append(b"\n")
                count += 1
            ends.append(count)
        found: list[list[int]] = [[] for _ in texts]
        if most <= 0 or not count:
            return found
        code, out = _run([*self._command, "--max-count", str(most), "-"], b"".join(pieces), going)
        if code not in (0, 1):
            # Older than these flags, or the pattern is too much for it. What RE2 says then holds.
            return self._instead().lines(texts, most, going)
        for line in out.splitlines():
            number = int(line[: line.index(b":")])
            which = bisect_right(ends, number - 1)
            found[which].append(number - (ends[which - 1] if which else 0))
        return found


#: Nothing of it is read from anywhere but the command line; bytes are UTF-8 and searched whatever they are; of a line that matches
#: comes no more than its number.
_FLAGS = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--encoding=none",
    "--text",
    "--no-mmap",
    "--threads=1",
    "--no-filename",
    "--no-heading",
    "--line-number",
    "--max-columns=1",
    "--regex-size-limit=64M",
    "--dfa-size-limit=64M",
)


def _run(command: list[str], given: bytes, going: Going) -> tuple[int, bytes]:
    import subprocess
    import time

    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        return -1, b""
    ends = time.monotonic() + _PATIENCE
    left: bytes | None = given
    try:
        while True:
            try:
                out, _ = child.communicate(left, timeout=_LOOK)
            except subprocess.TimeoutExpired:
                # It goes on with what it was given, and takes no more.
                left = None
                going()
                if time.monotonic() > ends:
                    return -1, b""
            else:
                return child.returncode, out
    finally:
        if child.returncode is None:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:
                # What was not yet written to it.
                pass
    child.wait()


def _hits(texts: Sequence[bytes], most: int, find: Callable[[bytes, int], int], going: Going) -> list[list[int]]:
    found: list[list[int]] = []
    for text in texts:
        going()
        here: list[int] = []
        number, counted, at = 1, 0, 0
        while most > 0 and at < len(text):
            at = find(text, at)
            if at < 0 or (at == len(text) and text.endswith(b"\n")):
                # Behind the last newline there is no line, though `^` and `$` match there.
                break
            number += text.count(b"\n", counted, at)
            counted = at
            here.append(number)
            most -= 1
            at = text.find(b"\n", at) + 1
            if not at:
                break
        found.append(here)
    return found


def split(text: bytes) -> list[bytes]:
    """The lines of a text."""
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _re2(pattern: str, spelled: str, ignore_case: bool, *, by_line: bool) -> Searcher:
    try:
        import re2
    except ImportError:
        needs = "RE2" if by_line else "RE2 or ripgrep"
        plain = "" if ignore_case else "search for plain text, or "
        raise invalid(
            f"{pattern[:80]!r} needs {needs}, which is not installed",
            f"{plain}{install_command('patterns')}" + ("" if by_line else " (or install ripgrep, which takes it, too)"),
        ) from None
    options = re2.Options()
    options.max_mem = _RE2_MEMORY
    options.log_errors = False
    # What is spelled anew has its other cases in it.
    options.case_sensitive = not (ignore_case and by_line)
    try:
        compiled = re2.compile(spelled.encode(), options)
    except re2.error as error:
        reason: Any = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise invalid(f"{pattern[:80]!r} is no pattern: {reason}", advice(reason)) from None
    return _Re2Lines(compiled) if by_line else _Re2(compiled)


def find_ripgrep(workspace: str) -> str | None:
    """The installed ripgrep, by its real path; None where there is none that can be trusted.

    What lies in the workspace may have been written by an agent, and what everybody may write by anybody.
    """
    found = _installed(os.environ.get("PATH", ""))
    if found is None or found == workspace or found.startswith(f"{workspace.rstrip('/')}/"):
        return None
    return found


@lru_cache(maxsize=4)
def _installed(path: str) -> str | None:
    for folder in path.split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        program = os.path.realpath(os.path.join(folder, "rg"))
        try:
            facts = [os.stat(program), os.stat(os.path.dirname(program))]
        except OSError:
            continue
        ours = all(f.st_uid in (0, os.geteuid()) and not f.st_mode & 0o002 for f in facts)
        if ours and stat.S_ISREG(facts[0].st_mode) and os.access(program, os.X_OK):
            return program
    return None
