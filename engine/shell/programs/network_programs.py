"""Programs that fetch, send, synchronise and install."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from albert_tools.engine.shell.expand import HOLE, Arg
from albert_tools.engine.shell.options import Options
from albert_tools.engine.shell.programs.finding import Finding, Look, naming, unknown, written

#: What brings text from elsewhere.
DOWNLOADERS = frozenset(
    "curl wget wget2 fetch aria2c axel http https xh lynx w3m links nc ncat netcat socat ftp scp ssh".split()
)
#: What makes text of something that nobody can read.
DECODERS = frozenset(
    "base64 base32 basenc xxd od openssl uudecode gunzip zcat bzcat xzcat zstdcat gzip bzip2 xz zstd gpg rev tr".split()
)


def curl(args: Sequence[Arg]) -> Iterator[Finding]:
    """``curl``."""
    options = Options(
        args,
        "oKTudXHAebcCDEFmPQrtUwxyYzh",
        "output config upload-file output-dir cookie-jar dump-header trace trace-ascii stderr data header request user url",
    )
    if options.has("K", "config"):
        yield Finding("", "its commands are in a file")
    targets = (
        "o",
        "output",
        "output-dir",
        "c",
        "cookie-jar",
        "D",
        "dump-header",
        "trace",
        "trace-ascii",
        "stderr",
        "libcurl",
    )
    yield from written(options.given(*targets))
    if any(name.startswith(("unix-s", "abstract-u")) for name in options.names):
        yield Finding("remote", "it talks to another program on this machine")
    if options.unknown:
        yield from unknown(args)


def wget(args: Sequence[Arg]) -> Iterator[Finding]:
    """``wget``."""
    options = Options(
        args, "OPoaieUtTwQ", "output-document directory-prefix output-file append-output execute config use-askpass"
    )
    if options.has("e", "execute config use-askpass"):
        yield Finding("", "it takes settings that name programs or files")
    yield from written(
        options.given("O", "P", "o", "a", "output-document", "directory-prefix", "output-file", "append-output")
    )
    if options.unknown:
        yield from unknown(args)


def rsync(args: Sequence[Arg]) -> Iterator[Finding]:
    """``rsync``."""
    options = Options(args, "efTBM", "rsh rsync-path temp-dir backup-dir partial-dir log-file filter exclude include")
    if any(name.startswith(("del", "remove-s")) for name in options.names):
        yield Finding("sync_delete")
    if options.has("e", "rsh rsync-path") or any(re.match(r"[^/]*:", a.text) for a in options.operands):
        yield Finding("remote")
    yield from written(options.operands[-1:])
    yield from unknown(args)


def nc(args: Sequence[Arg]) -> Iterator[Finding]:
    """``nc``."""
    options = Options(args, "pswqioIOTVxXg", "exec sh-exec lua-exec")
    if options.has("ec", "exec sh-exec lua-exec"):
        yield Finding("reverse_shell")
    yield from unknown(args)


def socat(args: Sequence[Arg]) -> Iterator[Finding]:
    """``socat``."""
    if any(re.search("exec|system|shell|pty", a.text.lower()) for a in args):
        yield Finding("reverse_shell")
    else:
        yield Finding("remote")


def _manager(harmless: str, valued: str = "") -> Look:
    """A program that installs for the whole machine, but for operations that only look."""
    looks = set(harmless.split())

    def look(args: Sequence[Arg]) -> Iterator[Finding]:
        options = Options(args, valued)
        first = options.operands[0].text if options.operands else ""
        if (
            not args
            or first in looks
            or (not first and options.names | options.letters <= {"version", "help", "h", "V", "v", "l"})
        ):
            yield from (f for f in unknown(options.operands[:1]))
        elif not first or HOLE in first:
            yield from unknown(args) if HOLE in first else (Finding("global_install"),)
        else:
            yield Finding("global_install")

    return look


def pip(args: Sequence[Arg]) -> Iterator[Finding]:
    """``pip``. Whether it stands in an environment of its own can't be told."""
    options = Options(args, "trcefi", "target requirement constraint prefix root")
    first = options.operands[0].text if options.operands else ""
    if HOLE in first or options.unknown:
        yield from unknown(args)
    elif first in ("install", "uninstall", "download", "wheel", "config", "cache"):
        if not (first in ("install", "config", "cache") and options.has("", "dry-run")):
            yield Finding("global_install")


def node_packages(args: Sequence[Arg]) -> Iterator[Finding]:
    """``npm``, ``pnpm``, ``yarn``: in the project they are a project's own."""
    options = Options(args, "C", "prefix cwd dir")
    first = options.operands[0].text if options.operands else ""
    if options.has("g", "global location") or first in (
        "global",
        "link",
        "publish",
        "config",
        "set",
        "login",
        "adduser",
        "token",
        "unpublish",
        "deprecate",
        "owner",
        "access",
        "dist-tag",
    ):
        yield Finding("global_install")
    elif first in ("exec", "x", "dlx", "create", "init") or first in ("explore",):
        yield Finding("", "it runs a program that it may fetch first")
    elif HOLE in first or options.unknown:
        yield from unknown(args)


def _fetches(args: Sequence[Arg]) -> Iterator[Finding]:
    yield Finding("", "it runs a program that it may fetch first")


def _named(*operations: str) -> Look:
    """A program of a language, of which some operations install."""

    def look(args: Sequence[Arg]) -> Iterator[Finding]:
        options = Options(args)
        first = " ".join(a.text for a in options.operands[:2])
        if any(first == o or first.startswith(f"{o} ") for o in operations):
            yield Finding("global_install")
        elif HOLE in first:
            yield from unknown(args)

    return look


def _either(*looks: Look) -> Look:
    """What any of them finds."""

    def look(args: Sequence[Arg]) -> Iterator[Finding]:
        for each in looks:
            yield from each(args)

    return look


def containers(args: Sequence[Arg]) -> Iterator[Finding]:
    """``docker``, ``podman``."""
    options = Options(args, "Hc", "host context config", until_operand=True)
    first = options.operands[0].text if options.operands else ""
    if options.letters or options.names - {"version", "help"}:
        yield Finding("containers")
    elif first not in (
        "",
        "ps",
        "images",
        "logs",
        "inspect",
        "version",
        "info",
        "stats",
        "top",
        "port",
        "diff",
        "history",
        "search",
    ):
        yield Finding("containers")


LOOKS: dict[str, Look] = {
    "curl": curl,
    "wget": wget,
    "wget2": wget,
    "rsync": rsync,
    "nc": nc,
    "ncat": nc,
    "netcat": nc,
    "socat": socat,
    "apt": _manager("list search show policy depends rdepends", "ot"),
    "apt-get": _manager("changelog check", "ot"),
    "aptitude": _manager("search show versions why"),
    "dpkg": _manager(""),
    "rpm": _manager(""),
    "dnf": _manager("list search info repolist provides repoquery"),
    "yum": _manager("list search info repolist provides"),
    "zypper": _manager("search info se if"),
    "pacman": _manager(""),
    "apk": _manager("info list search policy"),
    "brew": _manager("list search info deps leaves outdated config doctor"),
    "port": _manager("list search info installed"),
    "snap": _manager("list info find"),
    "flatpak": _manager("list info search"),
    "pkg": _manager("info search list"),
    "emerge": _manager(""),
    "nix-env": _manager(""),
    "gem": _manager("list search info which environment env"),
    "pipx": _manager("list environment"),
    "conda": _manager("list search info run"),
    "mamba": _manager("list search info run"),
    "pip": pip,
    "pip3": pip,
    "npm": node_packages,
    "pnpm": node_packages,
    "yarn": node_packages,
    "bun": node_packages,
    "npx": _fetches,
    "bunx": _fetches,
    "pnpx": _fetches,
    "uvx": _fetches,
    "uv": _named("pip", "tool", "python install", "self", "publish"),
    "poetry": _named("self", "publish", "config"),
    **dict.fromkeys(("flit", "hatch", "pdm"), _named("publish", "self")),
    **dict.fromkeys(
        ("pyenv", "rbenv", "nodenv", "asdf", "mise", "rustup"),
        _named("install", "uninstall", "update", "plugin", "self", "default", "toolchain", "global", "use", "link"),
    ),
    "composer": _named("global"),
    "corepack": _manager(""),
    **dict.fromkeys(("cpan", "cpanm", "opam", "guix"), _manager("list search info show")),
    **dict.fromkeys(("luarocks", "cabal"), _named("install")),
    "dotnet": _named("tool install"),
    "cargo": _either(_named("install", "uninstall", "publish", "yank", "login", "owner"), naming("--config")),
    "go": _either(
        _named("install", "get", "env", "run", "generate"),
        naming("-toolexec", "--toolexec", "-exec", "--exec", "-vettool", "--vettool", "-overlay", "--overlay"),
    ),
    "easy_install": _manager(""),
    "docker": containers,
    "podman": containers,
    "docker-compose": containers,
}
