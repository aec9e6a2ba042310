"""Whether a command is ordinary: known to only read, or to build and write within the workspace. Everything else asks.

The sandbox bounds what a command can reach. The judgement decides when a person is asked: `reader` finds all commands in the text,
`programs.toml` lists which of them are ordinary, and `dangers` explains some of the others. The table of dangers allows nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from itertools import dropwhile, pairwise

from albert_tools.engine.shell.dangers import danger_in
from albert_tools.engine.shell.marks import MARK
from albert_tools.engine.shell.places import Start, is_log
from albert_tools.engine.shell.programs import (
    TABLES,
    allow_list,
    demand_fits,
    has_subcommands,
    may_set,
    name_of,
    names_folder,
    row_of,
    starts_nothing,
)
from albert_tools.engine.shell.reader import (
    FROM_NULL,
    MAX_LENGTH,
    SHELLS,
    Action,
    Binding,
    Reader,
    SimpleCommand,
    Write,
)
from albert_tools.engine.shell.shells import could_be, is_bash, is_shell, runs_its_input, split_by_env, text_for_shell
from albert_tools.engine.shell.special_programs import SPECIAL, cd, run_inner
from albert_tools.engine.shell.verdict import Judgement, Part, shown, text_of
from albert_tools.engine.shell.word import AWAY, HOLE, Unclear, Unreadable, Word

#: Commands within commands (`sh -c`, `xargs`, `find -exec`).
MAX_DEPTH = 8
#: Parts of one judgement. A text with more asks.
MAX_PARTS = 500
#: Programs named in one command that can start others. Each is read, which takes time.
_MAX_STARTERS = 16
#: Folders in which the parts may start. With the further ones of a text, it can be any.
_MAX_FOLDERS = 8

#: Builtins that enter the folder that they name, and those that can enter any folder.
_CD, _ENTERING = ("cd", "chdir", "pushd"), frozenset("popd builtin command eval trap".split())
#: A module of Python is a program, too: the owner's patterns of `pytest` apply to `python -m pytest`.
_MODULE = "python -m "
#: The options with which a program of `no_output` prints what it does, or has errors about files that nobody named.
_PRINTING = re.compile(r"\w+ (-\w*[Rv]|--[rv])|set (-\w*x|xtrace)")
#: The arguments with which `timeout` ends all that it has started. Bash and Python ignore some other signals, and with `--verbose`
#: a closed pipe ends `timeout` itself before.
_ENDS_ALL = re.compile(r"(--preserve-status |-k *\S+ |-s *(SIG)?(KILL|TERM) )*[\d.]")
#: The path of a program of the project.
_OF_PROJECT = re.compile(r"(?!/|~|-|.*(?:\0|\.\.)).*/", re.DOTALL)
#: Builtins that can give another input to the commands behind them, also behind `command` and `builtin`.
_REOPENING = ("exec", "eval", "trap", ".", "source")
#: Builtins that run a text that an option gives (`-C`, `-x`).
_EVALUATING = frozenset("bind compgen complete mapfile readarray".split())
#: Words that can stand before a builtin.
_BEFORE_BUILTINS = ("builtin", "command", "time")
#: An option of git that sets something whose name is not known.
_SETS_UNKNOWN = re.compile(r"(?:^-c |--config-env[ =])[^=]*[\0*?\[{][^=]*=")
#: What gives a command an input, in the words of another one.
_FEEDS = re.compile(r"[|<]|>\(")
#: Builtins after which a name can mean another program.
_RENAMING = ("alias", "hash")
#: Variables whose items are names of programs, and builtins that set variables.
_NAMES, _SETTING = ("BASH_CMDS", "BASH_ALIASES"), frozenset("mapfile printf read readarray".split())
#: A word that is no code, also within a line of a makefile or a shell script.
_NO_CODE = r"[\w ./:=,()\[\]+-]*"
#: What can make `..` in a word: a variable, dots in and beside braces, two dots after a bracket, and, in some shells, a glob after
#: a dot.
_CAN_LEAVE = re.compile(r"\0|[\[{].*\.\.|[{,]\.|\.[,}{]|(?:^|/)\.[*?\[]", re.DOTALL)
_GLOB = re.compile(r"[*?\0]+|[\[{].*", re.DOTALL)
TO_THE_NETWORK = ("/dev/tcp", "/dev/udp", "/inet")


def judge_command(source: str, folder: str = "", root: str = "") -> Judgement:
    """What a text for bash runs that starts in `folder` (see `Start`) of the workspace `root`. Never raises: a text that cannot be
    read asks."""
    if len(source) > MAX_LENGTH:
        # Not cached.
        return _judged_text(source, folder, root)
    return _judged_cached(source, folder, root)


@lru_cache(maxsize=256)
def _judged_cached(source: str, folder: str, root: str) -> Judgement:
    return _judged_text(source, folder, root)


def _judged_text(source: str, folder: str, root: str) -> Judgement:
    judge = _Judge(source, folder, root)
    judge.read(source, 0)
    return judge.judgement(source)


def judge_template(template: str | Sequence[Word]) -> Mapping[str, str | None]:
    """Which marks of a template can change what it runs: each with the command that they can change; None if they can add commands.

    A mark is harmless only in an operand of an ordinary command, and if there is no other command, which could get what it stands
    for: by a pipe, a file, a variable.

    Args:
        template: A text for bash, or a program with its arguments.
    """
    judge = _Judge(marked=True)
    if isinstance(template, str):
        judge.read(template, 0)
        marks = MARK.findall(template)
    else:
        judge.call(template, text_of(template), 0)
        marks = [mark for word in template for mark in word.marks]
    other = next((shown(part.text) for part in judge.parts if part.verdict != "ordinary"), None)
    return {
        mark: judge.loose.get(mark, other if mark in judge.harmless else None)
        for mark in marks
        if other is not None or mark not in judge.harmless
    }


def judge_argv(argv: tuple[str, ...], folder: str = "", root: str = "") -> Judgement:
    """What a program with its arguments runs where no shell reads them. Never raises."""
    text = text_of([Word(word) for word in argv])
    judge = _Judge(text, folder, root)
    if sum(map(len, argv)) > MAX_LENGTH or any(HOLE in word for word in argv):
        judge.report(Unreadable("it is too long, or holds NUL characters"), " ".join(argv))
    else:
        judge.call([Word(word) for word in argv], text, 0)
    return judge.judgement(text)


class _Judge:
    def __init__(
        self, source: str = "", folder: str = "", root: str = "", marked: bool = False, outer: _Judge | None = None
    ) -> None:
        self._source = source
        #: Whether it judges a text itself, and not what a command in it could start.
        self._is_first = outer is None
        #: What commands could start, and the commands that were looked at for it. All judges of a text share these.
        self.within: list[Part] = outer.within if outer is not None else []
        self._started: set[tuple[bool, bool, tuple[Word, ...]]] = outer._started if outer is not None else set()
        self._marked = marked
        #: The marks in operands of ordinary commands; those in other commands, with the command.
        self.harmless: set[str] = set()
        self.loose: dict[str, str] = {}
        self._start = Start(folder)
        self._root = root
        self.folders = [folder]
        self.parts: list[Part] = []
        #: Whether the present text is for another shell than bash.
        self._posix: bool = outer is not None and outer._posix
        #: Whether the present command can have an input that is not empty.
        self._fed: bool = outer is not None and outer._fed
        #: Whether a file got new content, which a later command could run.
        self._wrote = False
        #: Whether a log file did, and whether a command has printed anything that is not of the project's own code. The file can be
        #: a link to code; that code could write to other files itself.
        self._logged, self._prints = False, _has_input(source)
        #: The files that get what the present command and those around it print.
        self._into: tuple[Write, ...] = ()
        #: Whether anything can have been printed since the present text for a shell began.
        self._printed = False
        #: Whether Python imports from a folder of the workspace, so that every program in Python could run what was written.
        self._imports = False
        #: Whether a command can go on after the text that has started it.
        self._lasts = False
        #: Whether all of a text is judged once more. Then its inner texts are not repeated by themselves.
        self._again = False
        #: Whether what is judged runs under `timeout`.
        self._limited = False

    def judgement(self, text: str) -> Judgement:
        """The result, for the text that was read."""
        parts, within = (tuple(dict.fromkeys(found)) for found in (self.parts, self.within))
        return Judgement(parts, text, tuple(self.folders), within)

    def read(self, source: str, depth: int, posix: bool = False) -> None:
        """Judge each action of a text."""
        around, self._posix = self._posix, posix
        reader = Reader(source, posix, self._marked)
        problem: Unclear | None = None
        try:
            reader.read()
        except Unclear as unclear:
            problem = unclear
        except RecursionError:
            problem = Unreadable("it is nested too deeply")
        prints_code = reader.prints_code or (depth > 0 and reader.comments_code)
        self._prints = self._prints or prints_code
        # An error names a file that can't be read.
        self._printed = prints_code or _has_input(source)
        for action in reader.actions:
            self._act(action, depth)
        self._lasts = self._lasts or reader.lasts
        if (self._lasts or reader.repeats) and not self._again:
            folders, looped, enters = self.folders, {*map(id, reader.looped)}, False
            self._again = True
            # What is repeated, or runs in the background, can run after what the text writes further down.
            for action in reader.actions:
                self._act(action, depth)
                enters = enters or (self.folders != folders and id(action) in looped)
                self.folders = folders
            self._again = False
            if enters:
                # It can enter a further folder each time.
                self.folders = [*folders, HOLE]
        if problem is not None:
            self.report(problem, problem.about or source)
        self._posix = around

    def report(self, problem: Unclear, about: str, argv: Sequence[Word] = (), *, writes: bool = False) -> None:
        """Add a part that asks. `writes`: it is a redirection."""
        if len(self.parts) > MAX_PARTS:
            return
        text = text_of(argv) if argv else about
        words = _argv(argv)
        danger = danger_in(f"{text}\n{problem.about}\n{about}", self._source)
        starts = not writes and not starts_nothing(argv)
        unreadable = isinstance(problem, Unreadable) or (starts and bool(argv) and self._could_run_anything(argv))
        if danger is not None:
            self.parts.append(
                Part("dangerous", text, words, danger.name, danger.why, danger.instead, unreadable, starts)
            )
        else:
            hint = "write the command and its arguments out plainly, one command at a time"
            self.parts.append(Part("unknown", text, words, "", problem.why, hint, unreadable, starts))

    def _could_run_anything(self, argv: Sequence[Word]) -> bool:
        """Whether a command is a shell whose text is not known, has a shell that runs its input, or could be a program or builtin
        that starts others."""
        text = text_for_shell(argv)
        if (text is not None and not text.known) or _could_name(argv[0], _starters()):
            return True
        words = _argv(argv)
        options = (f"{option.text} {word.text}" for option, word in pairwise(argv) if not word.known)
        if "git" in map(posixpath.basename, words) and any(map(_SETS_UNKNOWN.search, options)):
            # It can be an alias.
            return True
        is_fed = self._fed or any(_FEEDS.search(word) for word in words)
        return is_fed and (not argv[0].known or runs_its_input(words))

    def _look_within(self, argv: Sequence[Word], depth: int) -> None:
        """Judge what a command that is not ordinary could start: a text for a shell, and its words from a program on that starts
        others."""
        key = (self._fed, self._posix, tuple(argv))
        if not argv or depth > MAX_DEPTH or starts_nothing(argv) or key in self._started:
            return
        self._started.add(key)
        inner = _Judge(self._source, self.folders[0], self._root, outer=self)
        text, split = text_for_shell(argv), split_by_env(argv)
        begins = [at for at in range(1, len(argv)) if _starts_others(argv[at:])]
        if len(self._started) + len(self.within) > MAX_PARTS or len(begins) > _MAX_STARTERS:
            inner.report(Unreadable("it could start too many commands"), text_of(argv))
        elif text is not None and text.known:
            posix = self._posix if argv[0].text == "eval" else not is_bash(argv[0].text)
            inner.read(text.text, depth + 1, posix)
        elif split is not None:
            inner.call(split, text_of(split), depth + 1)
        else:
            if argv[0].text in _BEFORE_BUILTINS:
                # As an operand of other programs, `eval` is a subcommand.
                begins += [at for at in range(1, len(argv)) if not argv[at].text.startswith("-")][:1]
            for begin in begins:
                # Its folder doesn't matter.
                program = argv[begin]._replace(text=posixpath.basename(argv[begin].text))
                inner.call((program, *argv[begin + 1 :]), text_of(argv[begin:]), depth + 1)
            for word in argv[1:] if _evaluates(argv) else ():
                if word.known:
                    inner.read(word.text, depth + 1, self._posix)
        self.within += inner.parts

    def _act(self, action: Action, depth: int) -> None:
        if isinstance(action, SimpleCommand):
            around, printed = self._into, self._printed
            if printed:
                self._note_printed()
            self._into += action.writes
            fed, self._fed = self._fed, self._fed or action.fed
            self.call(action.argv, action.text, depth)
            self._fed = fed or any(word.text in _REOPENING for word in action.argv)
            self._into, self._printed = around, printed or not _is_silent(action)
            return
        try:
            if isinstance(action, Write):
                self._demand_plain_write(action)
                self._note_written(is_log(action.target))
            elif not may_set(action.name, action.value, action.exported, self._start):
                raise Unclear("it sets a variable that may change how programs run", f"{action.name}=")
            elif names_folder(action.name):
                self._imports = True
                self.parts.append(Part("ordinary", action.text))
        except Unclear as problem:
            # A variable is a part like a call, so that the owner's patterns apply to it.
            is_binding = isinstance(action, Binding)
            self.report(problem, action.text, [Word(action.text)] if is_binding else (), writes=not is_binding)

    def _demand_plain_write(self, write: Write) -> None:
        if write.empties:
            raise Unclear("it empties a file", f": {write.text}")
        self._start.demand_writable(write.target, write.text)

    def call(self, argv: Sequence[Word], about: str, depth: int) -> None:
        """Judge a program with its arguments, and the commands that it runs."""
        if not argv:
            return
        if len(self.parts) >= MAX_PARTS:
            self.report(Unreadable("it runs too many commands"), about)
            return
        inner_commands: list[Sequence[Word]] = []
        try:
            if depth > MAX_DEPTH:
                raise Unreadable("its commands run each other too deeply", about)
            does_more = self._demand_ordinary(argv, about, depth, inner_commands)
            # The owner's patterns also apply to a program that only runs another one.
            self.parts.append(Part("ordinary", text_of(argv), _argv(argv), only_runs=not does_more))
            if does_more:
                self.harmless.update(*(word.marks for word in argv))
        except Unclear as problem:
            self.report(problem, about, argv)
            self._look_within(argv, depth)
            # The owner may have listed it, and then nobody is asked. So it counts as printing and writing anything.
            self._prints = True
            self._wrote = self._wrote or not _brings_nothing(argv)
            self.loose |= {mark: shown(text_of(argv)) for word in argv for mark in word.marks}
        self._note_folder(_argv(argv))
        limited = self._limited
        self._limited = limited or name_of(argv[0]) == "timeout"
        for inner in inner_commands:
            self.call(inner, text_of(inner), depth + 1)
        self._limited = limited

    def _note_folder(self, argv: Sequence[str]) -> None:
        """Note that parts may start in another folder: also earlier ones, because of loops."""
        if argv[0] in _CD:
            entered = argv[1] if len(argv) == 2 and not argv[1].startswith(("-", "+", "~")) else HOLE
        elif argv[0] in _ENTERING and argv[1:2] not in (("-v",), ("-V",)):
            entered = HOLE
        else:
            return
        further = [HOLE if HOLE in entered else self._relative(folder, entered) for folder in self.folders]
        self.folders = [*dict.fromkeys((*self.folders, *further))]
        if len(self.folders) > _MAX_FOLDERS:
            self.folders = [*self.folders[:_MAX_FOLDERS], AWAY]

    def _relative(self, folder: str, entered: str) -> str:
        """The folder that is entered from another one, relative to the workspace if it is in it."""
        path = posixpath.normpath(posixpath.join(self._root, folder, entered))
        return posixpath.relpath(path, self._root) if self._root and f"{path}/".startswith(f"{self._root}/") else path

    def _demand_ordinary(self, argv: Sequence[Word], about: str, depth: int, inner: list[Sequence[Word]]) -> bool:
        """Raises `Unclear` unless the call itself is ordinary; the commands that it runs are added to `inner`.

        Returns whether the call does anything besides running these.
        """
        if not argv[0].known:
            raise Unclear("the name of its program is not known before it runs", about)
        if any(place in word.text for word in argv for place in TO_THE_NETWORK):
            raise Unclear("it opens a connection to the network", about)
        data = allow_list()
        name = name_of(argv[0])
        rest = list(argv[1:])
        if name in _SETTING and any(map(_changes_names, _variables(name, rest))):
            raise Unreadable("it can give a command another name", about)
        if name == "git":
            rest = self._without_leading_options(rest, about)
        if name in data["anything"] or (name == "command" and rest[:1] in ([Word("-v")], [Word("-V")])):
            self._prints = self._prints or _prints_files(name, rest)
            return True
        if name in SHELLS and len(rest) == 2 and rest[0] == Word("-c") and rest[1].known:
            self.read(rest[1].text, depth + 1, posix=name == "sh")
            return False
        if name in SPECIAL:
            self._prints = self._prints or _prints_files(name, rest)
            self._wrote = SPECIAL[name](rest, about, inner.append, self._start) or self._wrote
            if inner:
                # `find` prints between the commands that it runs.
                self._note_printed()
            return True
        # The end of a program can leave those that it has started: in a group of their own, or ignoring the signal.
        leaves = name == "timeout" and (self._limited or not _ENDS_ALL.match(text_of(rest)))
        self._lasts = self._lasts or leaves or name == "kill"
        # An argument of `env`.
        folders = [word.text for word in rest if "=" in word.text and names_folder(word.text.partition("=")[0])]
        self._imports = self._imports or bool(folders)
        for length in (2, 1, 0):
            if len(rest) < length or not all(word.known for word in rest[:length]):
                continue
            key = " ".join([name, *(word.text for word in rest[:length])])
            runner = row_of("runners", key)
            if runner is not None and (rest or key != "env"):
                self._demand_unwritten(bool(runner.get("builds")), about)
                run_inner(key, runner, rest[length:], about, inner.append, self._start)
                # Its own words, without the command that it runs.
                own = rest[: max(0, len(rest) - sum(map(len, inner)))]
                self._prints = self._prints or not all(word.fits(_NO_CODE) for word in own)
                self.parts += (Part("ordinary", text) for text in folders)
                return bool(runner.get("builds")) or not any(inner)
            if self._is_listed(key, rest[length:], about):
                return True
        if runs_its_input(_argv(argv)):
            if self._is_first and (is_shell(name) or name in (".", "source")):
                raise Unreadable("it runs what it reads", about)
            raise Unclear("it could start a shell that runs what it reads", about)
        if name in _RENAMING:
            raise Unreadable("it can give a command another name", about)
        shown_name = f"{name} {rest[0].text}" if rest and rest[0].known and has_subcommands(name) else name
        raise Unclear(f"{shown(shown_name)} is not known to be harmless", about)

    def _is_listed(self, key: str, rest: list[Word], about: str) -> bool:
        """Whether the allow-list has a row for a program with its subcommand; then the arguments must fit it."""
        for table in TABLES:
            row = row_of(table, key)
            if row is None:
                continue
            self._demand_unwritten(table == "builds", about)
            if table != "reads":
                # It may change files that it does not name.
                self._start.demand_writable(Word("."), about)
            wrote = demand_fits(row, rest, about, self._start)
            if row.get("stops"):
                # It runs a script, and the owner's patterns apply to that as to a program.
                script, *arguments = dropwhile(lambda word: word.text.startswith("-"), rest)
                argv = (f"./{script.text}", *_argv(arguments))
                self.parts.append(Part("ordinary", about, argv, only_runs=True))
            if key.startswith(_MODULE):
                self.parts.append(Part("ordinary", about, (key.removeprefix(_MODULE), *_argv(rest)), only_runs=True))
            self._prints = self._prints or _prints_files(key, rest, table)
            self._wrote = self._wrote or wrote
            if table == "writes":
                self._note_written(key == "tee" and all(map(is_log, rest)))
            return True
        return False

    def _note_printed(self) -> None:
        """Note that something can be in the files that get what the commands around print."""
        for write in self._into:
            self._note_written(is_log(write.target))

    def _note_written(self, is_logged: bool) -> None:
        self._logged = self._logged or is_logged
        self._wrote = self._wrote or not is_logged

    def _demand_unwritten(self, builds: bool, about: str) -> None:
        if (self._wrote or (self._logged and self._prints)) and (builds or self._imports):
            raise Unclear("it may run what an earlier command has written", about)

    def _without_leading_options(self, arguments: list[Word], about: str) -> list[Word]:
        """The arguments of git without ``--no-pager`` and ``-C folder``."""
        while arguments[:1] == [Word("--no-pager")]:
            del arguments[0]
        if arguments[:1] == [Word("-C")] and len(arguments) > 1:
            cd(arguments[1:2], about, lambda _: None, self._start)
            del arguments[:2]
        return arguments


def _variables(name: str, arguments: Sequence[Word]) -> Sequence[Word]:
    """The words that could name a variable which a builtin sets."""
    if name != "printf" or (arguments and not arguments[0].known):
        return arguments
    return [
        word for option, word in pairwise((Word(""), *arguments)) if option.text == "-v" or word.text.startswith("-v")
    ]


def _changes_names(variable: Word) -> bool:
    """Whether a variable could change what a name means, or run what stands in its brackets."""
    runs = not variable.known and re.match(r"(?:-v)?[A-Za-z_\0][\w\0]*\[", variable.text)
    return bool(runs or re.match("(-v)?BASH_(CMDS|ALIASES)", variable.text)) or _could_name(variable, _NAMES)


def _could_name(word: Word, names: Collection[str]) -> bool:
    """Whether an unknown word could be one of these names."""
    if word.known:
        return False
    name = posixpath.basename(_for_patterns(word).replace(AWAY, HOLE))
    return could_be(name, names) if HOLE in name else name in names


@cache
def _starters() -> Collection[str]:
    """The names of programs that start the command behind them, and of builtins that run a text or change what runs."""
    return frozenset(("find", *allow_list()["runners"], *_EVALUATING, *_RENAMING, *_REOPENING, *_BEFORE_BUILTINS))


def _evaluates(argv: Sequence[Word]) -> bool:
    """Whether a builtin of a shell runs a text in its words."""
    return argv[0].text == "trap" or (
        argv[0].text in _EVALUATING and any(re.match(r"-\w*[Cx]", word.text) for word in argv)
    )


def _starts_others(argv: Sequence[Word]) -> bool:
    """Whether a command begins with the name of a program whose further words the judge can read as a command."""
    if not argv[0].known:
        return text_for_shell(argv) is not None
    name = name_of(Word(posixpath.basename(argv[0].text)))
    return name == "find" or is_shell(name) or row_of("runners", name) is not None


def _brings_nothing(argv: Sequence[Word]) -> bool:
    """Whether a command that is not ordinary brings no content. A program of the project could write to other files itself."""
    name, script = name_of(argv[0]), argv[1:2]
    program = script[0] if name in (*SHELLS, "python") and script else argv[0]
    return _has_no_output(name) or _OF_PROJECT.match(program.text) is not None


def _has_input(source: str) -> bool:
    """Whether a text has a redirection that could read a file."""
    return "<" in FROM_NULL.sub("", source)


def _prints_files(key: str, arguments: Sequence[Word], table: str = "") -> bool:
    """Whether an ordinary program prints files, or what the command says, and not only what the project's code says."""
    if _has_no_output(key):
        if any(_PRINTING.match(f"{key} {word.text}") for word in arguments):
            return True
    # Programs that only read don't run the project's code, such as `npm ls`.
    elif table == "reads" or not re.fullmatch(allow_list()["own_output"], key, re.VERBOSE):
        return True
    # An error repeats an argument; pytest repeats an expression that it can't read.
    return not all(word.fits(_NO_CODE) for word in arguments)


def _is_silent(command: SimpleCommand) -> bool:
    """Whether a command prints nothing but errors that can't be code."""
    if not command.argv:
        return True
    name, words = name_of(command.argv[0]), command.argv[1:]
    return _has_no_output(name) and not _prints_files(name, words)


def _has_no_output(key: str) -> bool:
    return re.fullmatch(allow_list()["no_output"], key, re.VERBOSE) is not None


def _argv(words: Sequence[Word]) -> tuple[str, ...]:
    """The words for the owner's patterns; what globs and braces make is not known."""
    return tuple(map(_for_patterns, words))


def _for_patterns(word: Word) -> str:
    if word.known:
        return word.text
    if word.text in ("", HOLE) or (HOLE in word.text and not word.single):
        return HOLE
    return _GLOB.sub(AWAY if _CAN_LEAVE.search(word.text) else HOLE, word.text)
