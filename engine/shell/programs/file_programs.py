"""Programs that delete, write, move and change files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from albert_tools.engine.shell.expand import Arg
from albert_tools.engine.shell.options import Options
from albert_tools.engine.shell.places import is_broad, place
from albert_tools.engine.shell.programs.finding import Finding, Look, unknown, written
from albert_tools.engine.shell.reading_limits import MAX_PATTERN


def remove(args: Sequence[Arg]) -> Iterator[Finding]:
    """``rm``."""
    options = Options(args)
    recursive = options.has("rR", "recursive")
    if (recursive and options.has("f", "force")) or options.has("", "no-preserve-root"):
        yield Finding("recursive_delete")
    if any(is_broad(arg) and (recursive or arg.glob) for arg in options.operands):
        yield Finding("broad_delete")
    yield from written(options.operands)
    yield from unknown(args)


def all_written(args: Sequence[Arg]) -> Iterator[Finding]:
    """``tee``, ``touch``, …: every operand is written to."""
    yield from written(Options(args).operands)
    yield from unknown(args)


def made(args: Sequence[Arg]) -> Iterator[Finding]:
    """``mkdir``, ``mkfifo``, which can set permissions as well."""
    options = Options(args, "m", "mode")
    yield from (Finding("permissions") for mode in options.given("m", "mode") if _harmful_mode(mode.text))
    yield from written(options.operands)
    yield from unknown(args)


def outputs(args: Sequence[Arg]) -> Iterator[Finding]:
    """``shuf``, ``tree``, ``less``: they only read, but for what an option names."""
    options = Options(args, "oOineLPpTXbhjxyzk", "output log-file head-count random-source input-range lesskey-file")
    yield from written(options.given("o", "O", "output", "log-file", "LOG-FILE"))


def in_place(args: Sequence[Arg]) -> Iterator[Finding]:
    """``yq``, which writes to what it reads where it is told to."""
    if Options(args).has("i", "in-place inplace"):
        yield from written(args)


def masks(args: Sequence[Arg]) -> Iterator[Finding]:
    """``umask``."""
    for arg in args:
        if re.fullmatch("[0-7]+", arg.text):
            if not int(arg.text[-1]) & 2:
                yield Finding("permissions")
        elif "w" in arg.text and not re.fullmatch(r"[ug]*[=+-][rwx]*", arg.text):
            yield Finding("permissions")
    yield from unknown(args)


def listed(args: Sequence[Arg]) -> Iterator[Finding]:
    """``setfacl``: of whoever is given anything, only the owner is harmless."""
    for arg in args:
        for entry in arg.text.split(","):
            if re.search(r"(?:^|:)(?:o|other|u:[^:]+|user:[^:]+|g:[^:]+|group:[^:]+):+[rxX-]*w", entry):
                yield Finding("permissions")
    yield from chown(args)


def truncate(args: Sequence[Arg]) -> Iterator[Finding]:
    """``truncate``."""
    yield Finding("truncate")


def _moved(args: Sequence[Arg], move: bool) -> Iterator[Finding]:
    options = Options(args, "tS", "target-directory suffix")
    targets = [*options.given("t", "target-directory")]
    sources = options.operands if targets else options.operands[:-1]
    targets += [] if targets else options.operands[-1:]
    if not move and any(source.text == "/dev/null" for source in sources):
        yield Finding("truncate")
    yield from written(targets)
    # Under its own name it comes to lie where such names count.
    for source in sources:
        found = place(source)
        if found in ("startup_file", "git_hooks") or (move and found):
            yield Finding(found)
        if move and (is_broad(source) or any(t.text == "/dev/null" for t in targets)):
            yield Finding("broad_move")
    yield from unknown(args)


def move(args: Sequence[Arg]) -> Iterator[Finding]:
    """``mv``."""
    yield from _moved(args, True)


def copy(args: Sequence[Arg]) -> Iterator[Finding]:
    """``cp``, ``ln``, ``install``."""
    options = Options(args, "mogtS", "mode owner group target-directory suffix")
    yield from (Finding("permissions") for mode in options.given("m", "mode") if _harmful_mode(mode.text))
    yield from _moved(args, False)


def linked(args: Sequence[Arg]) -> Iterator[Finding]:
    """``ln``: through a link to folders of the system, what is written there is written under another name."""
    for arg in Options(args, "tS", "target-directory suffix").operands[:-1]:
        if arg.text.strip("/") == "" or place(arg, reading=True) == "system_files":
            yield Finding("system_files")
    yield from copy(args)


def dd(args: Sequence[Arg]) -> Iterator[Finding]:
    """``dd``."""
    if any(a.text == "if=/dev/null" for a in args):
        yield Finding("truncate")
    yield from written([Arg(a.text[3:], a.glob, a.splits) for a in args if a.text.startswith("of=")])
    yield from unknown(args)


def chmod(args: Sequence[Arg]) -> Iterator[Finding]:
    """``chmod``."""
    if any(len(a.text) > 4 and "--reference".startswith(a.text.partition("=")[0]) for a in args):
        yield Finding("", "it copies the permissions of another file")
    operands = [a for a in args if not a.text.startswith("--") and not re.fullmatch("-[Rcfv]+", a.text)]
    if operands and _harmful_mode(operands[0].text):
        yield Finding("permissions")
    yield from written(operands[1:])
    if any(re.fullmatch("-[cfv]*R[Rcfv]*", a.text) or "--recursive".startswith(a.text[:4] or " ") for a in args):
        if any(is_broad(a) and a.text not in (".", "./") for a in operands[1:]):
            yield Finding("permissions")
    yield from unknown(args)


def _harmful_mode(mode: str) -> bool:
    if re.fullmatch("[0-7]+", mode):
        digits = mode.zfill(4)
        return int(digits[-4:-3] or "0", 8) & 6 != 0 or int(digits[-1], 8) & 2 != 0 or len(digits) > 4
    return any(map(_harmful_clause, mode.split(",")))


def _harmful_clause(clause: str) -> bool:
    """Of ``ugo+rwx-x``, with as many changes as one likes."""
    who = re.match("[ugoa]*", clause)
    whom = who.group() if who else ""
    for sign, what in re.findall(r"([-+=])([^-+=]*)", clause):
        if sign != "-" and ("s" in what or (set(whom) & set("oa") and set(what) & set("wug"))):
            return True
    return False


def chown(args: Sequence[Arg]) -> Iterator[Finding]:
    """``chown``, ``chgrp``."""
    options = Options(args)
    if options.has("R", "recursive"):
        yield Finding("ownership")
    yield from written(options.operands[1:])
    yield from unknown(args)


def sort(args: Sequence[Arg]) -> Iterator[Finding]:
    """``sort``, which writes with -o and can run a program to compress."""
    options = Options(args, "kotST", "output compress-program temporary-directory key field-separator buffer-size")
    yield from written(options.given("o", "output"))
    if options.has("", "compress-program"):
        yield Finding("", "it runs another program")
    if options.unknown:
        yield from unknown(args)


def tar(args: Sequence[Arg]) -> Iterator[Finding]:
    """``tar``, which can run programs, and write anywhere."""
    texts = [a.text for a in args]
    runs = ("--to-c", "--checkpoint-a", "--us", "--rsh", "--rm", "--inf", "--new-v", "-I", "-F")
    if any(t.startswith(runs) for t in texts) or any(re.match("-?[A-Za-z]*[IF]", t) for t in texts[:1]):
        yield Finding("", "it runs another program")
    if any("C" in t and not t.startswith("-") for t in texts[:1]):
        yield Finding("", "the place where it writes is known only when it runs")
    if any(t.startswith("--ab") or re.match("-[A-Za-z]*P", t) for t in texts) or "P" in "".join(texts[:1]):
        yield Finding("system_files")
    if any(t.startswith(("--remo", "--recursive-u")) for t in texts):
        yield Finding("recursive_delete")
    options = Options(args, "fCTgXHLKNVb", "file directory exclude transform")
    extracts = any(re.match("-?[A-Za-z]*[xcru]", t) for t in texts[:1]) or options.has(
        "xcru", "extract get create append update"
    )
    yield from written([*options.given("C", "directory"), *(options.given("f", "file") if extracts else ())])
    yield from unknown(args)


def sed(args: Sequence[Arg]) -> Iterator[Finding]:
    """``sed``, whose scripts can run commands and write files."""
    options = Options(args, "eflE", "expression file line-length")
    scripts = [*options.given("e", "expression")]
    operands = options.operands
    if options.has("f", "file"):
        yield Finding("", "its commands are in a file")
    elif not scripts:
        scripts, operands = operands[:1], operands[1:]
    if not all(script.known or (not script.splits and "\0" not in script.text) for script in scripts):
        yield Finding("", "its effect is known only when it runs")
    elif not all(len(script.text) <= MAX_PATTERN and _plain_sed(script.text) for script in scripts):
        yield Finding("", "its script may run commands or write files")
    if any(a.text.startswith(("-i", "--i")) or re.match("-[nErsuz]+i", a.text) for a in args):
        yield from written(operands)
    if options.unknown:
        yield from unknown(args)


_ADDRESS = r"(?:[0-9]+|\$|/(?:[^/\\\n]|\\.)*/)"
_SED = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,[+~]?{_ADDRESS})?)?\s*!?\s*"
    r"(?:s(?P<d>[/|,#:@!%_~])(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)[gpiIm0-9]*"
    r"|y/[^/\\\n]*/[^/\\\n]*/|[dpqPDNnhHgGx=]|q[0-9]+)\s*(?:[;\n]|\Z)"
)


def _plain_sed(script: str) -> bool:
    at = 0
    script = script.strip()
    while at < len(script):
        found = _SED.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return True


def awk(args: Sequence[Arg]) -> Iterator[Finding]:
    """``awk``, whose programs can run commands and write files."""
    options = Options(args, "Fvfie", "field-separator assign file include source", until_operand=True)
    if options.letters - set("Fv") or options.names - {"field-separator", "assign", "version"}:
        yield Finding("", "its program may run commands or write files")
    program = options.operands[:1]
    if options.unknown or any("\0" in p.text or p.splits for p in program):
        yield Finding("", "its effect is known only when it runs")
    elif any(
        len(p.text) > MAX_PATTERN or re.search(r"system|getline|[|>@]|close|include|load", _without_texts(p.text))
        for p in program
    ):
        yield Finding("", "its program may run commands or write files")


def _without_texts(program: str) -> str:
    """An awk program without comparisons that only look like writing."""
    return re.sub(r"&&|\|\||(?<=[\w)\]] )>=?(?= ?[0-9]+(?:[^\w\"]|\Z))(?![^;{}]*print)", " ", program)


LOOKS: dict[str, Look] = {
    "rm": remove,
    "tee": all_written,
    "touch": all_written,
    "mkdir": made,
    "umask": masks,
    "shuf": outputs,
    "tree": outputs,
    "less": outputs,
    "yq": in_place,
    "rmdir": all_written,
    "unlink": all_written,
    "mkfifo": made,
    "mknod": made,
    "sponge": all_written,
    "truncate": truncate,
    "mv": move,
    "rename": move,
    "cp": copy,
    "ln": linked,
    "link": copy,
    "install": copy,
    "dd": dd,
    "chmod": chmod,
    "chown": chown,
    "chgrp": chown,
    "chattr": chown,
    "setfacl": listed,
    "sort": sort,
    "tar": tar,
    "bsdtar": tar,
    "gtar": tar,
    "sed": sed,
    "gsed": sed,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "nawk": awk,
}
