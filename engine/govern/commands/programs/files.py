"""Programs that delete, write, move and change files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from albert_tools.engine.govern.commands.expand import Arg
from albert_tools.engine.govern.commands.limits import MAX_PATTERN
from albert_tools.engine.govern.commands.options import Options
from albert_tools.engine.govern.commands.places import is_broad, place
from albert_tools.engine.govern.commands.programs.finding import Finding, Look, unknown, written


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


def truncate(args: Sequence[Arg]) -> Iterator[Finding]:
    """``truncate``."""
    yield Finding("truncate")


def _moved(args: Sequence[Arg], move: bool) -> Iterator[Finding]:
    options = Options(args, "tS", "target-directory suffix")
    targets = [*options.given("t", "target-directory")]
    sources = options.operands if targets else options.operands[:-1]
    targets += [] if targets else options.operands[-1:]
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


def dd(args: Sequence[Arg]) -> Iterator[Finding]:
    """``dd``."""
    yield from written([Arg(a.text[3:], a.glob, a.splits) for a in args if a.text.startswith("of=")])
    yield from unknown(args)


def chmod(args: Sequence[Arg]) -> Iterator[Finding]:
    """``chmod``."""
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
    return any(
        "s" in part.partition("=" if "=" in part else "+")[2]
        or (re.match(r"[ug]*[oa][ugoa]*[+=][rxXt]*w|[ugoa]*o[ugoa]*=[ugoa]", part) is not None)
        for part in mode.split(",")
    )


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
        yield Finding("", "it runs a program of its own")
    if options.unknown:
        yield from unknown(args)


def tar(args: Sequence[Arg]) -> Iterator[Finding]:
    """``tar``, which can run programs, and write anywhere."""
    texts = [a.text for a in args]
    runs = ("--to-c", "--checkpoint-a", "--use-c", "--rsh", "--info-s", "--new-v", "-I", "-F")
    if any(t.startswith(runs) for t in texts) or any(re.match("-?[A-Za-z]*[IF]", t) for t in texts[:1]):
        yield Finding("", "it runs a program of its own")
    if any("C" in t and not t.startswith("-") for t in texts[:1]):
        yield Finding("", "where it writes can't be told")
    if any(t.startswith(("-P", "--absolute-n")) for t in texts):
        yield Finding("system_files")
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
        yield Finding("", "what it does stands in a file")
    elif not scripts:
        scripts, operands = operands[:1], operands[1:]
    if not all(script.known or (not script.splits and "\0" not in script.text) for script in scripts):
        yield Finding("", "what it does isn't known before it runs")
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
        yield Finding("", "what it does isn't known before it runs")
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
    "mkdir": all_written,
    "rmdir": all_written,
    "unlink": all_written,
    "mkfifo": all_written,
    "mknod": all_written,
    "sponge": all_written,
    "truncate": truncate,
    "mv": move,
    "rename": move,
    "cp": copy,
    "ln": copy,
    "link": copy,
    "install": copy,
    "dd": dd,
    "chmod": chmod,
    "chown": chown,
    "chgrp": chown,
    "chattr": chown,
    "setfacl": chown,
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
