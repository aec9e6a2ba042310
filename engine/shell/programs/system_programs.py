"""Programs and builtins that reach beyond files: processes, the shell's own state, what it does later."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence

from albert_tools.engine.shell.dangers import is_harmful
from albert_tools.engine.shell.expand import HOLE, Arg
from albert_tools.engine.shell.interpreters import is_stdin
from albert_tools.engine.shell.options import Options
from albert_tools.engine.shell.places import is_broad, place
from albert_tools.engine.shell.programs.file_programs import all_written
from albert_tools.engine.shell.programs.finding import Finding, Look, naming, unknown, written

_OPERATORS = frozenset("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o ]".split())
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[0-9@*]+\])?")


def kill(args: Sequence[Arg]) -> Iterator[Finding]:
    """``kill``."""
    texts = [a.text for a in args]
    if texts[:1] in (["-l"], ["-L"]):
        return
    targets = texts[2:] if texts[:1] in (["-s"], ["-n"]) else texts[1:] if texts and texts[0].startswith("-") else texts
    many = re.compile("-(?!-$).*|0*[01]", re.S)
    if any(many.fullmatch(t) for t in targets) or texts[:1] == ["-1"]:
        yield Finding("kill_all")
    yield from unknown(args)


def history(args: Sequence[Arg]) -> Iterator[Finding]:
    """``history``."""
    if args and not args[0].text.isdigit():
        yield Finding("history")


def clears(args: Sequence[Arg]) -> Iterator[Finding]:
    """``journalctl``, ``dmesg``: they read logs, and can take them away."""
    options = Options(args, "uSUtpnogFMlsf")
    if options.has("Cc", "clear read-clear") or any(n.startswith(("vac", "rot", "console")) for n in options.names):
        yield Finding("history")


def addresses(args: Sequence[Arg]) -> Iterator[Finding]:
    """``ip``, ``ifconfig``, ``route``, ``nmcli``: they show how the machine is reached, and change it."""
    words = {a.text for a in args}
    if words & set("add del delete set change replace flush exec up down append restore modify connect".split()):
        yield Finding("firewall")
    yield from unknown(args)


def frees(args: Sequence[Arg]) -> Iterator[Finding]:
    """``fuser``."""
    if Options(args, "nM").has("k", "kill"):
        yield Finding("kill_all")


def declare(args: Sequence[Arg]) -> Iterator[Finding]:
    """``export``, ``declare``, …"""
    for arg in args:
        text = arg.text
        name, _, value = text.partition("=")
        if text.startswith(("-", "+")):
            if set(text[1:]) - set("aAgxprtlufF"):
                yield Finding("", "it makes a variable that runs code or refers to another one")
        elif is_harmful(name.rstrip("+")):
            yield Finding("environment")
        elif HOLE in name or not _NAME.fullmatch(name.rstrip("+")):
            yield Finding("", "the name of its variable is known only when it runs")
        if value.startswith("("):
            # A quoted list is taken apart like one that isn't, and the substitutions in it run.
            yield Finding("", "it reads a text as a list, and runs code in it")


def names(args: Sequence[Arg]) -> Iterator[Finding]:
    """``read``, ``unset``, …: builtins that take names of variables, whose subscripts they evaluate."""
    options = Options(args, "dinNptuO")
    if options.has("C"):
        yield Finding("", "it runs a command for its input")
    for arg in options.operands:
        if is_harmful(arg.text):
            yield Finding("environment")
        elif not _NAME.fullmatch(arg.text):
            yield Finding("", "the name of its variable is known only when it runs")
    yield from unknown(args)


def printf(args: Sequence[Arg]) -> Iterator[Finding]:
    """``printf``, which can set a variable."""
    if args and args[0].text.startswith("-v"):
        yield from names([Arg(args[0].text[2:])] if args[0].text[2:] else args[1:2])
    elif args and args[0].text.startswith(HOLE):
        yield Finding("", "it may set a variable whose name is known only when it runs")


def test(args: Sequence[Arg]) -> Iterator[Finding]:
    """``test``, ``[``: asked whether a variable is set, they evaluate its subscript."""
    for before, arg in itertools.pairwise(args):
        if before.text in ("-v", "-R") and not _NAME.fullmatch(arg.text):
            yield Finding("", "the name of its variable is known only when it runs")
        # An operator that isn't known could be that one.
        elif HOLE in before.text and arg.text not in _OPERATORS and (HOLE in arg.text or "[" in arg.text):
            yield Finding("", "its test is known only when it runs")


def let(args: Sequence[Arg]) -> Iterator[Finding]:
    """``let``."""
    if not all(re.fullmatch(r"[\w\s+\-*/%=<>!&|()~^?:,]*", a.text) for a in args):
        yield Finding("", "it evaluates a text that is known only when it runs")


def settings(args: Sequence[Arg]) -> Iterator[Finding]:
    """``set``."""
    index = 0
    while index < len(args):
        text = args[index].text
        if text in ("--", "-"):
            return
        if text in ("-o", "+o"):
            if index + 1 < len(args) and args[index + 1].text not in (
                "pipefail",
                "errexit",
                "nounset",
                "xtrace",
                "noglob",
                "noclobber",
            ):
                yield Finding("", "it changes how the shell parses what follows")
            index += 1
        elif re.fullmatch(r"[-+][eufxCvo]+", text):
            index += text.endswith("o")
        elif text.startswith(("-", "+", HOLE)):
            yield Finding("", "it changes how the shell parses what follows")
        else:
            return
        index += 1


def changes_shell(args: Sequence[Arg]) -> Iterator[Finding]:
    """``shopt``, ``alias``, …"""
    if args:
        yield Finding("", "it changes what the commands after it mean")


def hash_table(args: Sequence[Arg]) -> Iterator[Finding]:
    """``hash``."""
    if any(a.text != "-r" for a in args):
        yield Finding("", "it changes what the commands after it mean")


def enter(args: Sequence[Arg]) -> Iterator[Finding]:
    """``cd``, ``pushd``: names behind it mean others."""
    for arg in args:
        if arg.text in ("-P", "-L", "--", "-"):
            continue
        found = place(arg)
        if found and found != "startup_file":
            yield Finding(found)
        elif _temporary(arg):
            # The command's own, and gone with it.
            continue
        elif arg.text.startswith("/") and is_broad(arg):
            yield Finding("system_files")
        elif HOLE in arg.text or arg.splits or arg.glob:
            yield Finding("", "the folder that it enters is known only when it runs")


def _temporary(arg: Arg) -> bool:
    known = HOLE not in arg.text and not arg.splits and not arg.glob
    return known and f"{posixpath.normpath(arg.text)}/".startswith("/tmp/")


def complete(args: Sequence[Arg]) -> Iterator[Finding]:
    """``compgen``, ``bind``, …"""
    yield Finding("", "it can run other commands")


def runs_others(args: Sequence[Arg]) -> Iterator[Finding]:
    """Programs that are told in many ways to run others."""
    yield Finding("", "it can run any other command")


def hostname(args: Sequence[Arg]) -> Iterator[Finding]:
    """``hostname``, ``date``: asked, they answer; given something, they set it."""
    if any(not a.text.startswith(("-", "+")) for a in args):
        yield Finding("services")


def make(args: Sequence[Arg]) -> Iterator[Finding]:
    """``make``, whose variables and options name programs."""
    options = Options(args, "CfIjloW", "directory file makefile jobs eval")
    if options.has("E", "eval"):
        yield Finding("", "it runs a text as code")
    if any(is_stdin(a.text) for a in options.given("f", "file", "makefile")):
        yield Finding("", "it runs its input as code, which can't be judged")
    yield from (f for f in written(options.given("C", "directory")) if f.pattern)
    if any(
        a.text.partition("=")[0].rstrip(":?+!")
        in ("SHELL", "MAKE", "CC", "CXX", "RM", "AR", "LD", "AS", "CPP", ".SHELLFLAGS")
        and "=" in a.text
        for a in args
    ):
        yield Finding("environment")
    if options.unknown or any("$" in a.text for a in args):
        yield from unknown(args)
        yield Finding("", "the command that it runs is known only then")


def cmake(args: Sequence[Arg]) -> Iterator[Finding]:
    """``cmake``, which is also a way to run scripts and to delete."""
    if any(a.text.startswith(("-P", "-E", HOLE)) for a in args):
        yield Finding("", "it runs other commands")
    yield from make(args)


def compiler(args: Sequence[Arg]) -> Iterator[Finding]:
    """``gcc``, which can be told to run other programs as its parts."""
    if any(a.text.startswith(("-wrapper", "-B", "-fplugin", "-specs", "--specs", "-fuse-ld", "@")) for a in args):
        yield Finding("", "it runs another program")
    yield from archive(args)


def dumps(args: Sequence[Arg]) -> Iterator[Finding]:
    """``tcpdump``."""
    if Options(args, "zwrciFGWCsTy").has("z", "postrotate-command"):
        yield Finding("", "it runs another program")


def typeset(args: Sequence[Arg]) -> Iterator[Finding]:
    """``latex``, whose documents run commands where they are allowed to."""
    if any(a.text.lstrip("-").startswith(("shell-escape", "enable-write18")) or HOLE in a.text[:1] for a in args):
        yield Finding("", "it lets a document run commands")


def dates(args: Sequence[Arg]) -> Iterator[Finding]:
    """``date``, which sets the clock as well."""
    options = Options(args, "sdrfIvz", "set date reference file iso-8601 rfc-3339")
    if options.has("s", "set") or any(re.fullmatch(r"[0-9.]{6,}", a.text) for a in options.operands):
        yield Finding("services", "it sets the clock")


def archive(args: Sequence[Arg]) -> Iterator[Finding]:
    """``unzip``, ``patch``, compilers: they write where an option says."""
    options = Options(args, "dopr", "output directory")
    yield from written([*options.given("d", "o", "output", "directory")])


def copies(args: Sequence[Arg]) -> Iterator[Finding]:
    """``cpio``, which unpacks to wherever the names in its archive say."""
    options = Options(args, "CDEFHIMORW", "file format directory rsh-command pattern-file")
    if options.has("", "rsh-command"):
        yield Finding("", "it runs another program")
    if options.has("p", "pass-through") or (options.has("i", "extract") and not options.has("t", "list")):
        yield Finding("", "the place where it writes is known only when it runs")
    yield from written([*options.given("D", "directory", "O")])


def allocates(args: Sequence[Arg]) -> Iterator[Finding]:
    """``fallocate``, which also takes parts of files away."""
    if Options(args, "lo", "length offset").has("pczdi", "punch-hole collapse-range zero-range dig-holes insert-range"):
        yield Finding("truncate")
    yield from all_written(args)


def unpacks(args: Sequence[Arg]) -> Iterator[Finding]:
    """``dpkg-deb``, which unpacks into the folder behind the archive."""
    options = Options(args, "DSZz")
    if options.has("xXRe", "extract vextract raw-extract control"):
        yield from written(options.operands[1:])


def members(args: Sequence[Arg]) -> Iterator[Finding]:
    """``ar``."""
    yield from written(args[1:2])


def _but(harmless: str) -> Look:
    """A program that works on other machines, but for operations that only look."""
    looks = set(harmless.split())

    def look(args: Sequence[Arg]) -> Iterator[Finding]:
        first = next((a.text for a in args if not a.text.startswith("-")), "")
        if first and first not in looks:
            yield Finding("remote")

    return look


def hosted(args: Sequence[Arg]) -> Iterator[Finding]:
    """``gh``, ``glab``: what they only show is harmless, but for what lets others in."""
    words = [a.text for a in args if not a.text.startswith("-")][:2]
    looks = {"view", "list", "status", "diff", "checks", "search", "help", "version", "watch", "issues", "prs", "repos"}
    if words and (words[0] in ("api", "auth", "secret", "extension", "alias", "codespace") or not set(words) & looks):
        yield Finding("remote")


def hooks(args: Sequence[Arg]) -> Iterator[Finding]:
    """``pre-commit``, ``husky``: they put themselves where git runs them."""
    first = next((a for a in args if not a.text.startswith("-")), None)
    if (
        first is None
        or not first.known
        or first.text in ("install", "init", "init-templatedir", "add", "set", "uninstall")
    ):
        yield Finding("git_hooks")


LOOKS: dict[str, Look] = {
    "kill": kill,
    "history": history,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), declare),
    **dict.fromkeys(("read", "unset", "mapfile", "readarray", "getopts", "wait"), names),
    "printf": printf,
    **dict.fromkeys(("journalctl", "dmesg"), clears),
    **dict.fromkeys(("ip", "ifconfig", "route", "nmcli"), addresses),
    "fuser": frees,
    **dict.fromkeys(("test", "["), test),
    "let": let,
    "set": settings,
    **dict.fromkeys(("shopt", "alias", "enable", "unalias", "disown"), changes_shell),
    "hash": hash_table,
    **dict.fromkeys(("cd", "pushd", "chdir"), enter),
    **dict.fromkeys(("complete", "compgen", "compopt", "bind"), complete),
    **dict.fromkeys(
        (
            "script scriptreplay ssh-agent newgrp sg hyperfine proxychains proxychains4 torsocks cpulimit run-one "
            "tsp expect unbuffer screen tmux byobu dtach abduco gdb lldb valgrind perf ltrace strace dtruss "
            "dtrace bpftrace prlimit setarch linux32 linux64 i386 x86_64 bwrap firejail proot fakeroot faketime "
            "systemd-inhibit dbus-run-session dbus-launch entr watchexec nodemon concurrently vi vim nvim view ex "
            "ed emacs emacsclient nano pico joe man info xdg-open open osascript gio daemonize "
            "run-parts rlwrap m4 pwsh powershell cmd.exe wine qemu-system-x86_64 qemu-x86_64 "
            "ld-linux-aarch64.so.1 git-shell zsh fish ksh mksh csh tcsh rc es xonsh nu elvish "
            "tclsh wish lua luajit guile racket sbcl clisp ghci runghc ocaml scala groovy jshell julia R Rscript "
            "octave sqlite3 psql mysql mongo redis-cli iex erl elixir swift kotlin ts-node tsx deno crystal nim "
            "dart xterm gnome-terminal konsole zip ansible-console puppet salt-call chef-client parallel-ssh pdsh "
            "cssh start-stop-daemon ld-linux.so.2 ld-linux-x86-64.so.2 yash posh osh hush sash pdksh oksh loksh lksh "
            "ipython jython micropython pypy-c graalpy bpython ptpython hy raku perl6 jrunscript jshell clojure clj bb "
            "lein swipl gforth janet duckdb mariadb mongosh gnuplot maxima dc tini dumb-init catatonit chpst softlimit "
            "s6-setuidgid s6-svscan setuidgid envuidgid envdir setlock supervise runsv multilog "
            "inotifyd incrontab logrotate tcc nsjail minijail0 cgcreate "
            "red rview rvim vimdiff gvim gview gvimdiff evim nvimdiff mc mcedit ranger lf nnn vifm tig lazygit gitk gitui "
            "editor sensible-editor sensible-pager sensible-browser x-www-browser pager see run-mailcap run-this-one "
            "keep-one-running pipexec asciinema scriptlive autoexpect empty mispipe pee zrun lckdo lf crash coredumpctl jdb ldd "
            "irb pry rails runhaskell pgcli mycli litecli usql cqlsh sqlcmd sqlplus clickhouse-client soffice libreoffice "
            "msgexec msgfilter memusage logsave sotruss fstab-decode luit lli pg_virtualenv gdbtui vgdb valgrind.bin not "
            "vim.basic vim.tiny vim.nox tclsh8.6 gpg-connect-agent jexec jhsdb "
            "scapy jupyter jupyter-nbconvert git-web--browse vipe vidir"
        ).split(),
        runs_others,
    ),
    **dict.fromkeys(("hostname", "hostnamectl", "timedatectl", "localectl"), hostname),
    **dict.fromkeys(("make", "gmake", "bmake", "just", "ninja", "meson"), make),
    "cmake": cmake,
    **dict.fromkeys(("gcc", "cc", "g++", "c++", "clang", "clang++", "c89", "c99", "cpp", "gfortran"), compiler),
    "date": dates,
    **{
        program: naming(*options.split())
        for program, options in {
            "rg": "--pre! --hostname-bin! --pager!",
            "ag": "--pager!",
            "bat": "--pager!",
            "split": "--filter",
            "fzf": "--preview --bind --execute --with-shell",
            "sdiff": "--diff-program",
            "diff3": "--diff-program",
            "aria2c": "--on- --conf-path --hook",
            "ctags": "--options --_",
            "java": "-javaagent -agentpath -agentlib -XX:OnError -XX:OnOutOfMemoryError -Xrun @",
            "javac": "-processor -J @",
            "rustc": "-Clinker -Clink-arg -C linker link-arg -Zcodegen-backend --codegen @",
            "pandoc": "--filter --lua-filter -F -L --pdf-engine --defaults -d",
            "protoc": "--plugin @",
            "groff": "-U --unsafe",
            "gs": "-dNOSAFER -dDELAYSAFER @",
            "ghc": "-e -pgm -fplugin -F @",
            "ssh-keygen": "-D -w",
            "ssh-add": "-s",
            "openssl": "-engine --engine -provider --provider",
            "gdbserver": "--wrapper",
            "lynx": "-editor -cfg",
            "w3m": "-config -o",
            "prove": "--exec -e --source",
            "stack": "ghci runghc exec eval script",
            "libtool": "--mode=execute",
            "dpkg-buildpackage": "--hook --sign-command",
            "convert": "msl: ephemeral: vid: @",
            "magick": "msl: ephemeral: vid: @",
        }.items()
    },
    "tcpdump": dumps,
    **dict.fromkeys(("tex", "latex", "pdftex", "pdflatex", "xelatex", "lualatex", "luatex"), typeset),
    **dict.fromkeys(("unzip", "7z", "7za", "7zz", "patch", "ld", "csplit", "objcopy", "strip"), archive),
    "cpio": copies,
    "fallocate": allocates,
    "dpkg-deb": unpacks,
    "ar": members,
    **dict.fromkeys(
        ("terraform", "tofu", "terragrunt", "pulumi"),
        _but("plan validate fmt version show output graph providers init preview"),
    ),
    **dict.fromkeys(("gh", "glab", "hub"), hosted),
    **dict.fromkeys(("pre-commit", "husky", "lefthook", "overcommit"), hooks),
}
