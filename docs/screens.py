"""Write the pictures of the chat and of progress in `docs/images/`, from a real terminal.

Run it as ``python -m docs.screens`` at the top of the project. It needs tmux. A scripted model takes the place of a real one.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.color import Color
from rich.text import Text

from tests.helpers.scripted_model import Reply, scripted

IMAGES = Path(__file__).parent / "images"
COLUMNS, ROWS = 106, 60
LINE, LEFT, CHARACTER = 19, 18, 8.1

TOOL = '''@example(arguments={"path": "a"}, files={"a": "x y"}, result=2)
def count_words(path: str) -> int:
    """Count the words of a file.

    Args:
        path: The file.
    """
    words = tools.read_file(path=path).split()
    print(f"{path}: {len(words)} words")
    return len(words)
'''
CHAT = [
    Reply("I write a tool for that.\n", calls=[("define_tool", {"source": TOOL})]),
    Reply(calls=[("run_tool", {"name": "count_words", "arguments": {"path": "notes.md"}})]),
    Reply(calls=[("run_program", {"argv": ["wc", "-w", "notes.md"]})]),
    "`notes.md` has **25 words**, and `wc` agrees. The tool `count_words` is saved.",
    Reply(calls=[("bash", {"command": "make slow-tests"})]),
    "All parts pass.",
    "It is written.",
]
MAKEFILE = "slow-tests:\n\t@for n in 1 2 3 4 5 6; do echo test_part_$$n passed; sleep 2; done\n"
COMMAND = "for n in 1 2 3 4 5 6; do echo test_part_$n passed; sleep 2; done"


class Terminal:
    """A shell in a pane of tmux, with a server of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._socket = folder / "tmux"
        shell = shlex.join(["env", *(f"{name}={value}" for name, value in environment.items()), "sh"])
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder / "work"), shell)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def type(self, text: str, *keys: str) -> None:
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", *(keys or ("Enter",)))

    def until(self, text: str) -> str:
        """Wait until the screen has a text, and return the screen with its colours."""
        end = time.monotonic() + 120
        while text not in self._tmux("capture-pane", "-p"):
            if time.monotonic() > end:
                sys.exit(f"{text!r} did not appear:\n{self._tmux('capture-pane', '-p')}")
            time.sleep(0.1)
        time.sleep(0.5)
        return self._tmux("capture-pane", "-e", "-p")

    def close(self) -> None:
        self._tmux("kill-server")


def picture(screen: str) -> str:
    """A screen as SVG."""
    # A style lasts into the next lines.
    lines = list(AnsiDecoder().decode(screen.strip("\n").rstrip()))
    width, height = round(2 * LEFT + COLUMNS * CHARACTER), LINE * len(lines) + 32
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13.5">',
        f'  <rect width="{width}" height="{height}" rx="8" fill="#0f172a"/>',
        '  <g fill="#e2e8f0">',
    ]
    for number, line in enumerate(lines):
        out.append(f'    <text x="{LEFT}" y="{34 + number * LINE - 6}">{_spans(line)}</text>')
    return "\n".join([*out, "  </g>", "</svg>", ""])


#: The colours of a terminal on a dark ground, by their numbers.
_COLOURS = "#475569 #f87171 #4ade80 #facc15 #60a5fa #c084fc #22d3ee #e2e8f0".split()


def _spans(text: Text) -> str:
    out = ""
    for piece in text.divide(sorted({edge for span in text.spans for edge in (span.start, span.end)})):
        style = ""
        for span in piece.spans:
            given = span.style
            if isinstance(given, str):
                continue
            if given.color is not None and not given.color.is_default:
                style += f' fill="{_colour(given.color)}"'
            if given.dim:
                style += ' opacity="0.75"'
            if given.bold:
                style += ' font-weight="600"'
        content = escape(piece.plain, quote=False).replace(" ", "\N{NO-BREAK SPACE}")
        out += f"<tspan{style}>{content}</tspan>" if style else content
    return out


def _colour(color: Color) -> str:
    if color.number is not None and color.number < 16:
        return _COLOURS[color.number % 8]
    return color.get_truecolor().hex


def _write(name: str, screen: str) -> None:
    (IMAGES / f"{name}.svg").write_text(picture(screen), encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, scripted(CHAT) as model:
        folder = Path(name).resolve()
        (folder / "work" / ".albert").mkdir(parents=True)
        notes = Path("examples/data/project/notes.md").read_text(encoding="utf-8")
        (folder / "work" / "notes.md").write_text(notes, encoding="utf-8")
        (folder / "work" / "Makefile").write_text(MAKEFILE, encoding="utf-8")
        environment = {
            "ALBERT_HOME": str(folder / "home"),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PS1": "$ ",
            "COLORTERM": "",
        }
        terminal = Terminal(folder, environment)
        try:
            terminal.type(f"clear; albert chat --base-url {model.base_url} --model large")
            terminal.until("/help")
            terminal.type("How many words does notes.md have?")
            terminal.until("[no]")
            terminal.type("once")
            _write("chat", terminal.until("is saved"))
            terminal.type("", "C-l")
            terminal.type("Now run the slow tests.")
            terminal.until("[no]")
            terminal.type("once")
            terminal.until("test_part_2 passed")
            terminal.type("Write the result into notes.md.")
            terminal.type("And then", "Space")
            _write("chat-waiting", terminal.until("And then"))
            terminal.until("It is written.")
            terminal.type("", "C-c")
            terminal.type("/quit")
            terminal.until("to continue")
            terminal.type(f"clear; albert run bash command={shlex.quote(COMMAND)}")
            terminal.until("once or no?")
            terminal.type("once")
            _write("progress", terminal.until("test_part_4 passed"))
        finally:
            terminal.close()


if __name__ == "__main__":
    main()
