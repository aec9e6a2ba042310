"""Judging a command: read it, walk through everything that it runs, and say of each part what it is.

The walk is over all that could run, not over what will: both branches of a condition, the body of a function whether it is called
or not, what comes after `||`. Where a program runs another command, that one is judged as well, and where it can't be told what
runs, that is the verdict: nothing that isn't known counts as harmless.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from albert_tools.engine.shell import interpreters, runners
from albert_tools.engine.shell.dangers import BY_NAME, is_harmful
from albert_tools.engine.shell.expand import HOLE, Arg, expanded, plain, value
from albert_tools.engine.shell.places import place
from albert_tools.engine.shell.programs import LOOKS, READERS, system_programs
from albert_tools.engine.shell.programs.finding import Finding
from albert_tools.engine.shell.programs.network_programs import DECODERS, DOWNLOADERS
from albert_tools.engine.shell.reader import DECLARE, read
from albert_tools.engine.shell.reading_limits import MAX_DEPTH, MAX_LENGTH, MAX_MADE, Unreadable
from albert_tools.engine.shell.second_parser import agree
from albert_tools.engine.shell.syntax import Command, Compound, Hole, Redirect, Script, Simple, Text, Word
from albert_tools.engine.shell.verdict import Judgement, Part, dangerous, dynamic, shown, text_of
from albert_tools.engine.shell.words import Notes

#: Folders that programs of the system are in. Elsewhere a program is somebody's own, whatever it is called.
_SYSTEM_BIN = re.compile(r"(?:/usr|/usr/local|/opt/homebrew|/opt/local)?/s?bin/[^/]+")

#: Operators that write to what they name.
_WRITES = frozenset((">", ">>", ">|", "<>", ">&", "&>", "&>>"))

#: Programs whose answer is a number, or nothing that arithmetic could run.
_COUNTERS = frozenset("wc nproc date stat du seq id expr bc sysctl getconf tput".split())
_NUMBERS = frozenset("#?$!")


def judge_command(source: str) -> Judgement:
    """What a text for bash runs. Never raises, whatever the text: what can't be read is dangerous."""
    if len(source) > MAX_LENGTH:
        # Not to be remembered.
        return Judgement(
            (dangerous("unreadable", shown(source[:MAX_LENGTH]), (), f"it is longer than {MAX_LENGTH:,} characters"),)
        )
    return _judged(source)


@lru_cache(maxsize=256)
def _judged(source: str) -> Judgement:
    judge = _Judge(Notes())
    try:
        judge.source(source)
        judge.evaluated()
    except Unreadable as problem:
        return Judgement((*judge.parts, dangerous("unreadable", shown(source), (), str(problem))))
    except RecursionError:
        return Judgement((*judge.parts, dangerous("unreadable", shown(source), (), "it is nested too deeply")))
    return Judgement(tuple(dict.fromkeys(judge.parts)))


def judge_argv(argv: tuple[str, ...]) -> Judgement:
    """What a program with its arguments runs where no shell reads them. Never raises."""
    judge = _Judge(Notes())
    try:
        if sum(map(len, argv)) > MAX_LENGTH or any(HOLE in word for word in argv):
            raise Unreadable("it is too long, or holds NUL characters")
        judge.called([plain(word) for word in argv], None, 0)
        judge.evaluated()
    except (Unreadable, RecursionError) as problem:
        return Judgement((*judge.parts, dangerous("unreadable", shown(" ".join(argv)), (), str(problem))))
    return Judgement(tuple(dict.fromkeys(judge.parts)))


class _Judge:
    def __init__(self, notes: Notes) -> None:
        self.parts: list[Part] = []
        self.notes = notes
        #: Whether ``$HOME`` is what it was.
        self._home = True
        #: Whether a variable may hold what arithmetic would run.
        self._tainted = False
        #: Whether there are functions, and whether any command is given what arithmetic would run.
        self._functions = False
        self._handed = False
        #: Names that a builtin declares with a value that isn't known. Of a list it reads it as one.
        self._declared: set[str] = set()
        #: Names of functions whose bodies are being walked.
        self._within: list[str] = []
        self._depth = 0
        #: Words that braces have made, in the text and in all texts in it.
        self._made = 0
        #: Characters of the text and of all texts in it.
        self._length = 0

    def evaluated(self) -> None:
        """What was noted on the way, all over the text."""
        for why in dict.fromkeys(self.notes.turned):
            self.parts.append(dynamic("${…}", (), why))
        tainted = self._tainted or (self._functions and self._handed)
        if self.notes.lists & self._declared:
            self.parts.append(dynamic("declare …", (), "it may read a value as a list, and runs code in it"))
        if (self.notes.arithmetic and tainted) or not all(map(_counted, self.notes.fed)):
            self.parts.append(dynamic("$((…))", (), "arithmetic runs code in a variable, and its value is unknown"))

    def source(self, source: str, posix: bool = False) -> None:
        """A text for a shell.

        Raises:
            Unreadable: it isn't certain how it is read.
        """
        self._length += len(source)
        if self._length > 2 * MAX_LENGTH:
            # Each is read anew, so many within each other would take many times as long.
            raise Unreadable("the texts in it are too long")
        script, _, begins = read(source, posix, self._depth, self.notes)
        agree(source, begins)
        # Named without being used: it may become another.
        self._home = self._home and not re.search(r"(?<!\$)(?<!\$\{)\bHOME\b", source)
        self._script(script)

    # The tree.

    def _script(self, script: Script, feeding: Iterable[str] = ()) -> None:
        """`feeding` are the names of programs whose output it reads."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        for pipeline in script.pipelines:
            before = set(feeding)
            for command in pipeline:
                self._command(command, before)
                before |= set(_programs(command))
        self._depth -= 1

    def _command(self, command: Command, before: set[str]) -> None:
        if isinstance(command, Simple):
            self._simple(command, before)
            return
        self._words(command.words)
        if command.kind == "test" and any((w.literal or "") in _COMPARES for w in command.words):
            self.notes.arithmetic = True
        if command.kind == "for":
            self._assigned(command.name, command.words)
        if command.kind == "function":
            self._functions = True
            self._within.append(command.name)
        for script in command.scripts:
            self._script(script, before)
        if command.kind == "function":
            self._within.pop()
        self._redirects(command.redirects, [plain(f"({command.kind})")])

    def _simple(self, command: Simple, before: set[str]) -> None:
        for assignment in command.assignments:
            self._words(assignment.values)
            self._assigned(assignment.name, assignment.values)
            if is_harmful(assignment.name):
                self._found(Finding("environment"), [plain(f"{assignment.name}=…")])
            if assignment.name.startswith("HIST"):
                self._found(Finding("history"), [plain(f"{assignment.name}=…")])
        self._words(command.words)
        self._handed = self._handed or any(map(_taints, command.words[1:]))
        args = expanded(command.words, self._home)
        self._made += max(0, len(args) - len(command.words))
        if self._made > MAX_MADE:
            raise Unreadable("braces make too many words")
        self._redirects(command.redirects, args)
        if not args:
            # Nothing is left where every word came to nothing; then what was an argument may be the command.
            if command.words:
                self.parts.append(dynamic("…", (), "the command is known only when it runs"))
            if any(r.operator in (">", ">|") and not _harmless_target(r) for r in command.redirects):
                self._found(Finding("truncate"), [plain(">"), *(value(r.target) for r in command.redirects[:1])])
            return
        if _prints_nothing(args) and any(
            r.operator in (">", ">|") and not _harmless_target(r) for r in command.redirects
        ):
            self._found(Finding("truncate"), args)
        if args[0].text in DECLARE or args[0].text == "set":
            self._assigned("", command.words[1:])
        if args[0].text in ("read", "mapfile", "readarray", "getopts", "printf"):
            self._tainted = self._tainted or args[0].text != "printf" or any(a.text.startswith("-v") for a in args)
        start = len(self.parts)
        self.called(args, _given(command.redirects), self._depth)
        self._sources(self.parts[start:], command, before, args)

    def _sources(self, parts: Iterable[Part], command: Simple, before: set[str], args: Sequence[Arg]) -> None:
        """Where a shell runs what isn't known, whether it comes from a server or is hidden by an encoding."""
        interprets = any(_interprets(part.argv) for part in parts if part.verdict != "ordinary")
        if not interprets:
            return
        inside = set(before)
        words = [*command.words, *(r.target for r in command.redirects), *(r.body for r in command.redirects if r.body)]
        for word in words:
            for script in word.scripts:
                inside |= {name for pipeline in script.pipelines for c in pipeline for name in _programs(c)}
        if inside & DOWNLOADERS:
            self._found(Finding("download_to_interpreter"), args)
        elif inside & DECODERS:
            self._found(Finding("decoded_to_interpreter"), args)

    def _words(self, words: Iterable[Word | None]) -> None:
        for word in words:
            if word is not None:
                for script in word.scripts:
                    self._script(script)

    def _redirects(self, redirects: Iterable[Redirect], args: Sequence[Arg]) -> None:
        said: set[Finding] = set()
        for redirect in redirects:
            self._words((redirect.target, redirect.body))
            if redirect.operator in ("<<", "<<-", "<<<"):
                continue
            for target in expanded([redirect.target], self._home):
                for finding in self._redirect(redirect, target):
                    if finding not in said:
                        said.add(finding)
                        self._found(finding, [*args, plain(redirect.operator), target])

    def _redirect(self, redirect: Redirect, target: Arg) -> Iterator[Finding]:
        if redirect.operator in ("<&", ">&") and re.fullmatch(r"[0-9]*-?", target.text):
            return
        writes = redirect.operator in _WRITES
        # What a process substitution is joined to has been walked.
        substituted = _is_process(redirect.target)
        found = place(target)
        if found == "reverse_shell" or (found and writes):
            yield Finding(found)
        elif HOLE in target.text and writes and not substituted:
            yield Finding("", "the place where it writes is known only when it runs")
        elif HOLE in target.text and not writes and not substituted:
            # What is read could be a connection to another system_programs.
            if target.text.startswith((HOLE, "/dev", "/\0")) or "/.." in target.text:
                yield Finding("", "the place where it reads is known only when it runs")

    def _assigned(self, name: str, values: Iterable[Word]) -> None:
        if name == "HOME":
            self._home = False
        self._tainted = self._tainted or any(map(_taints, values))

    def _listed(self, args: Sequence[Arg]) -> None:
        """Notes of a call what it does with lists."""
        name, rest = args[0].text, args[1:]
        flags = {c for a in rest if a.text.startswith("-") for c in a.text}
        named = {a.text.partition("=")[0].rstrip("+"): a.text.partition("=")[2] for a in rest}
        if (
            name in ("mapfile", "readarray")
            or (name == "read" and "a" in flags)
            or (name in DECLARE and flags & set("aA"))
        ):
            self.notes.lists |= named.keys()
        if name in DECLARE:
            self._declared |= {n for n, given in named.items() if given.startswith(HOLE)}

    # Calls.

    def called(self, args: Sequence[Arg], stdin: Arg | None, depth: int) -> None:
        """A program and its arguments; `stdin` is what it reads, where that stands in the command.

        Raises:
            Unreadable: a text in it can't be read.
        """
        if depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        first = args[0]
        if not first.known or not first.text:
            self._found(Finding("", "the program is known only when it runs"), args)
            return
        if first.text in self._within:
            self._found(Finding("fork_bomb"), args)
            return
        name = posixpath.basename(first.text.rstrip("/")).lower()
        if name.startswith("g") and not _is_known(name) and _is_known(name[1:]):
            # GNU's tools, where the system has others.
            name = name[1:]
        if not _is_known(name) and _is_known(unnumbered := re.sub(r"-?[0-9][0-9.]*$", "", name)):
            # One of several versions.
            name = unnumbered
        if name in ("test", "[") and any(arg.splits for arg in args):
            self.notes.arithmetic = True
        self._listed(args)
        start = len(self.parts)
        own = "/" in first.text and not _SYSTEM_BIN.fullmatch(posixpath.normpath(first.text))
        ran = self._ran(name, args, stdin, depth) if name else False
        # Each is said once: of a command of a thousand words, a thousand may fit the same pattern.
        for finding in dict.fromkeys(self._findings(name, args)):
            self._found(finding, args)
        if len(self.parts) > start and any(p.verdict != "ordinary" for p in self.parts[start:]):
            return
        if own:
            why = "it runs a file, whose commands can't be judged"
            self.parts.append(dynamic(text_of(args), _argv(args), why, file=True))
        elif not ran:
            self.parts.append(Part("ordinary", text_of(args), _argv(args)))

    def _ran(self, name: str, args: Sequence[Arg], stdin: Arg | None, depth: int) -> bool:
        """Whether the call does nothing of its own but run what was judged instead."""
        rest = args[1:]
        if name in interpreters.SHELLS:
            return self._shell(name, args, stdin, depth)
        if interpreters.language_of(name):
            runs, module = interpreters.language(name, rest)
            installer = module[0].text.partition(".")[0].lower() if module and module[0].known else ""
            if runs.kind == "module" and installer in _INSTALLERS:
                self.called([plain(installer), *module[1:]], None, depth + 1)
            elif runs.kind == "module" and (not module or not module[0].known):
                self._found(Finding("", "the module that it runs is known only then"), args)
            elif runs.kind == "module" and module[0].text.partition(".")[0].lower() in _CODE_MODULES:
                self._found(Finding("", _CODE["code"]), args)
            elif runs.kind not in ("program", "module"):
                self._found(Finding("", _CODE[runs.kind]), args)
            return False
        if name in ("source", "."):
            self.parts.append(
                dynamic(
                    text_of(args),
                    _argv(args),
                    "it runs a file, whose commands can't be judged",
                    all(a.known for a in args),
                )
            )
            return True
        if name not in runners.RUNNERS:
            return False
        ran = False
        for found in runners.inner(name, rest):
            if isinstance(found, Finding):
                self._found(found, args)
            elif found.text is not None:
                ran = True
                self._text(found.text, args, depth)
            elif found.args:
                ran = True
                self.called(found.args, None, depth + 1)
            else:
                self._found(Finding("", "the command that it runs is known only then"), args)
        return ran and name not in ("find", "fd", "fdfind", "trap")

    def _text(self, text: Arg, args: Sequence[Arg], depth: int, posix: bool = False) -> None:
        """A text that a shell reads in the middle of a command."""
        if not text.known:
            self._found(Finding("", "what it runs is put together only when it runs"), args)
            return
        inner = self._depth
        self._depth = max(depth, inner) + 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        self.source(text.text, posix)
        self._depth = inner

    def _shell(self, name: str, args: Sequence[Arg], stdin: Arg | None, depth: int) -> bool:
        runs = interpreters.shell(name, args[1:])
        self._tainted = self._tainted or runs.given
        if runs.kind == "text" and runs.text is not None:
            self._text(runs.text, args, depth, runs.posix)
            return True
        if runs.kind == "stdin" and stdin is not None and stdin.known:
            self._text(stdin, args, depth, runs.posix)
            return True
        if runs.kind == "file":
            why = "it runs a script, whose commands can't be judged"
            self.parts.append(dynamic(text_of(args), _argv(args), why, file=all(a.known for a in args)))
            return True
        if runs.kind != "program":
            self._found(Finding("", _CODE[runs.kind]), args)
        return False

    def _findings(self, name: str, args: Sequence[Arg]) -> Iterator[Finding]:
        pattern = BY_NAME.get(name) or ("raw_disk" if name.startswith(("mkfs.", "fsck.")) else "")
        if pattern:
            yield Finding(pattern)
        look = LOOKS.get(name)
        if look is not None:
            yield from look(args[1:])
        if name not in READERS and name not in DECLARE:
            # Of a program that isn't known it isn't known either what it does with a file that it is given.
            for arg in args[1:]:
                for text in _named(arg):
                    found = place(text, reading=True)
                    if found:
                        yield Finding(found)

    def _found(self, finding: Finding, args: Sequence[Arg]) -> None:
        text, argv = text_of(args), _argv(args)
        if finding.pattern:
            self.parts.append(dangerous(finding.pattern, text, argv, finding.why))
        else:
            self.parts.append(dynamic(text, argv, finding.why))


def _prints_nothing(args: Sequence[Arg]) -> bool:
    """Whether what it is redirected to is only emptied."""
    name, rest = args[0].text, [a.text for a in args[1:]]
    if name == "cat":
        return bool(rest) and all(text == "/dev/null" for text in rest)
    return name in (":", "true", "false") or (name == "echo" and rest == ["-n"]) or (name == "printf" and rest == [""])


def _is_known(name: str) -> bool:
    return name in LOOKS or name in runners.RUNNERS or name in BY_NAME or name in interpreters.SHELLS


#: Python's modules that run what they are given.
_CODE_MODULES = frozenset(
    "timeit pdb bdb code trace cprofile profile idlelib asyncio ensurepip runpy ipython sqlite3".split()
)
_INSTALLERS = frozenset(("pip", "pip3", "uv", "pipx", "easy_install"))
_COMPARES = frozenset("-eq -ne -lt -le -gt -ge -v -R".split())
_CODE = {
    "stdin": "it runs its input as code, which can't be judged",
    "code": "it runs code of another language, which can't be judged",
    "unknown": "the command that it runs is known only then",
}


def _argv(args: Sequence[Arg]) -> tuple[str, ...]:
    """The arguments with NUL wherever one isn't known."""
    return tuple(HOLE if a.splits else a.text for a in args)


def _named(arg: Arg) -> Iterator[Arg]:
    """The paths that an argument could name: all of it, what is behind an = or a short option, what is before or behind a colon."""
    text = arg.text
    if text.startswith(("--exclude", "--ignore", "--include")):
        return
    yield arg
    if "=" in text:
        yield Arg(text.partition("=")[2], arg.glob, arg.splits)
    if len(text) > 2 and text[0] == "-" and text[1] != "-":
        yield Arg(text[2:], arg.glob, arg.splits)


def _given(redirects: Iterable[Redirect]) -> Arg | None:
    """What stands in the command for the program to read; the last one counts."""
    found: Arg | None = None
    for redirect in redirects:
        if redirect.operator in ("<<", "<<-"):
            found = value(redirect.body) if redirect.body is not None else plain(HOLE)
        elif redirect.operator == "<<<":
            found = value(redirect.target)
        elif redirect.operator.startswith("<"):
            found = None
    return found


def _is_process(word: Word) -> bool:
    """Whether a word is nothing but ``<(…)`` or ``>(…)``, which is marked as a quoted hole of no name."""
    return word.pieces == (Hole("", True),) and len(word.scripts) == 1


def _harmless_target(redirect: Redirect) -> bool:
    return (redirect.target.literal or "").startswith("/dev/")


def _taints(word: Word) -> bool:
    """Whether a word may come to what arithmetic would run, which has a subscript in it."""
    for piece in word.pieces:
        if isinstance(piece, Text):
            if "[" in piece.text or (not piece.quoted and set(piece.text) & set("*?")):
                return True
        elif piece.name not in _NUMBERS and not _counts(word):
            return True
    return False


def _counts(word: Word) -> bool:
    """Whether a word is nothing but the answer of a program that counts."""
    alone = all(isinstance(p, Hole) or not p.text for p in word.pieces)
    return alone and len(word.pieces) <= 3 and len(word.scripts) == 1 and _counted(word.scripts[0])


def _counted(script: Script) -> bool:
    """Whether what a script prints is a number."""
    command = script.pipelines[-1][-1] if script.pipelines and script.pipelines[-1] else None
    if len(script.pipelines) != 1 or not isinstance(command, Simple) or not command.words:
        return False
    return command.words[0].literal in _COUNTERS and not any(_taints(w) for w in command.words[1:])


def _programs(command: Command) -> Iterator[str]:
    """The names that programs have anywhere in a command, as far as they are plain."""
    if isinstance(command, Compound):
        for script in command.scripts:
            for pipeline in script.pipelines:
                for inner in pipeline:
                    yield from _programs(inner)
        return
    for word in command.words:
        text = "".join(p.text for p in word.pieces if isinstance(p, Text))
        yield text.rpartition("/")[2].lower()
        for script in word.scripts:
            for pipeline in script.pipelines:
                for inner in pipeline:
                    yield from _programs(inner)


def _interprets(argv: Sequence[str]) -> bool:
    """Whether it is an interpreter, or something that runs one."""
    for word in argv[:4]:
        name = posixpath.basename(word).lower()
        if (
            name in interpreters.SHELLS
            or interpreters.language_of(name)
            or name in ("source", ".", "eval")
            or LOOKS.get(name) is system_programs.runs_others
        ):
            return True
    return False
