"""What programs do with what they are given: which of their calls fit a dangerous pattern. One file for each kind of work."""

from __future__ import annotations

from albert_tools.engine.shell.programs import file_programs, git_program, network_programs, system_programs
from albert_tools.engine.shell.programs.finding import Look

#: Who looks at the calls of a program, by its name in small letters.
LOOKS: dict[str, Look] = {
    name.lower(): look
    for part in (file_programs, git_program, system_programs, network_programs)
    for name, look in part.LOOKS.items()
}

#: Programs that only read what they are given, so that they may be given anything to read.
READERS = frozenset(
    "cat tac less more head tail grep egrep fgrep zgrep rg ag ls dir vdir stat file wc diff cmp comm md5sum "
    "sha1sum sha224sum sha256sum sha384sum sha512sum cksum b2sum b3sum sum test [ echo printf readlink "
    "realpath basename dirname pwd du df tree bat strings hexdump od nl cut tr jq yq awk gawk mawk sed sort "
    "find getent which type whereis command true false : sleep ps uname whoami id seq expr tput column fold "
    "fmt paste join look numfmt shuf factor locate lsof namei nproc free uptime date cal tty logname groups".split()
)  # fmt: skip
