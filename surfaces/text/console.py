"""Output: text and colours for people, one JSON document for programs.

Text from tools, files and agents may be hostile. On a terminal its control characters, escape sequences and direction marks are
printed as escapes (``\\x1b``). A pipe gets the text unchanged, because a program reads it. In JSON they are always escaped.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from albert_tools.engine.model.error_codes import CODES
from albert_tools.engine.model.visible_text import harmless
from albert_tools.engine.model.visible_text import one_line as one_line
from albert_tools.engine.model.visible_text import safe as safe
from albert_tools.grammar.wrap import cut, folded

#: Width of a terminal that does not report its width.
DEFAULT_WIDTH = 80
#: Text is never wrapped to fewer cells than this.
MIN_WIDTH = 20

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def columns(stream: TextIO) -> int | None:
    """Cells of a line on the terminal behind `stream`; None if `stream` is not a terminal. ``COLUMNS`` overrides the width."""
    if not stream.isatty():
        return None
    wanted = os.environ.get("COLUMNS", "")
    try:
        width = int(wanted) if wanted.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        width = 0
    return max(width, MIN_WIDTH) if width else DEFAULT_WIDTH


def json_text(value: Any, indent: int | None = 2) -> str:
    """The JSON text of a value, with JSON escapes for everything that a terminal would interpret. Without `indent`: one line."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    hidden = {ord(c): json.dumps(c)[1:-1].replace("\x7f", "\\u007f") for c in set(text) if not harmless(c)}
    hidden.pop(ord("\n"), None)
    return text.translate(hidden) if hidden else text


class Unwritable(Exception):
    """Stdout can't be written, for example because the disk is full or the stream is closed."""


class Console:
    """Writes to stdout and stderr. If `json` is set, stdout gets exactly one document; if `strict` is set, in the strict form."""

    def __init__(self, *, json_output: bool = False, strict: bool = False, no_color: bool = False) -> None:
        self.json = json_output
        self.strict = strict
        self.quiet = False
        for stream in (sys.stdout, sys.stderr):
            # The encoding may lack characters, and a path may contain invalid text.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        plain = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        self.out_colour = sys.stdout.isatty() and not plain and not json_output
        self.err_colour = sys.stderr.isatty() and not plain
        #: Cells of a line; None if the stream is not a terminal.
        self.out_width = columns(sys.stdout)
        self.err_width = columns(sys.stderr)
        self.interactive = sys.stderr.isatty() and not json_output
        #: Text that is delayed while a question is open; None if no question is open.
        self._held: list[tuple[str, TextIO]] | None = None

    def paint(self, text: str, *styles: str, err: bool = False) -> str:
        """`text` in colour, if the stream has colours."""
        if not (self.err_colour if err else self.out_colour):
            return text
        return "".join(f"\x1b[{_CODES[s]}m" for s in styles) + text + "\x1b[0m"

    def say(self, text: str = "", hang: int = 0) -> None:
        """Print a line on stdout for people: our own words, or text made safe. Continuation lines start in column `hang`."""
        if not self.json:
            self.write(folded(text, self.out_width, hang) + "\n")

    def write(self, text: str) -> None:
        """Print our own words on stdout, unchanged.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
            Unwritable: the operating system reports an error.
        """
        try:
            sys.stdout.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritable(error.strerror or str(error)) from error

    def flush(self) -> None:
        """Flush stdout. Raises the same errors as `write`."""
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritable(error.strerror or str(error)) from error

    def note(self, text: str, hang: int = 2) -> None:
        """Print a remark on stderr."""
        if not self.quiet:
            print(folded(text, self.err_width, hang), file=sys.stderr, flush=True)

    def progress(self, text: str) -> None:
        """Replace the progress line, on a terminal only. An empty text removes the line."""
        if self.interactive and self._held is None:
            sys.stderr.write("\r\x1b[K" + (self.paint(cut(text, self.err_width), "dim", err=True) if text else ""))
            sys.stderr.flush()

    def document(self, value: Any, indent: int | None = 2) -> None:
        """Print the JSON document."""
        text = json_text(value, indent)
        try:
            text.encode(sys.stdout.encoding)
        except UnicodeEncodeError:
            # JSON can escape characters that the encoding lacks.
            text = json.dumps(value, indent=indent)
        self.write(text + "\n")

    def value(self, value: Any) -> None:
        """Print a tool's output: a text as it is, any other value as JSON."""
        if value is None:
            return
        text = value if isinstance(value, str) else json_text(value)
        text = text if text.endswith("\n") else text + "\n"
        self.write(safe(text) if sys.stdout.isatty() else text)

    def untrusted(self, text: str, stream: TextIO) -> None:
        """Print untrusted text. On a terminal the text is made safe."""
        if self._held is not None:
            self._held.append((text, stream))
            return
        stream.write(safe(text) if stream.isatty() else text)
        stream.flush()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A block for a question: inside it, no progress is shown, and untrusted text is delayed."""
        self.progress("")
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for text, stream in held:
                self.untrusted(text, stream)

    def failure(self, error: dict[str, Any], where: str = "") -> None:
        """Print an error: the problem, its place, and what to do."""
        # The message of a failed example already names the line.
        with_place = error.get("source") and error["code"] != "example_failed"
        line = f" ({_place(error)})" if with_place else ""
        head = self.paint(f"error[{error['code']}]", "red", "bold", err=True)
        print(folded(f"{head}: {safe(where)}{safe(str(error['message']))}{line}", self.err_width, 2), file=sys.stderr)
        hint = error.get("hint")
        if not hint and error["code"] in CODES and error["code"] != "tool_error":
            hint = f"`albert help {error['code']}` says more"
        if hint:
            print(
                folded(f"  {self.paint('help', 'cyan', err=True)}: {safe(str(hint))}", self.err_width, 8),
                file=sys.stderr,
            )
        sys.stderr.flush()


def _place(error: dict[str, Any]) -> str:
    """The line that failed, and the lines of the calls that led to it."""
    trail = (error.get("details") or {}).get("trail") or [error["source"]]
    if len(trail) == 1:
        return f"line {error['source']['line']}"
    steps = [f"line {step['line']} of {safe(str(step['tool']))}" for step in reversed(trail)]
    return ", called in ".join(steps)
