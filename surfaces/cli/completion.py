"""Shell completion, by argcomplete."""

from __future__ import annotations

import argparse

from albert_tools.surfaces.cli.console import Console


def completion(options: argparse.Namespace, console: Console) -> int:
    """Print the script for a shell: ``eval "$(albert completion bash)"``."""
    import argcomplete

    console.write(argcomplete.shellcode(["albert"], shell=options.shell) + "\n")  # type: ignore[attr-defined]
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, when it is the shell that calls; does not return then."""
    import argcomplete

    argcomplete.autocomplete(parser)


def names(prefix: str) -> list[str]:
    """The tools whose name begins with `prefix`; none when they can't be told."""
    from albert_tools.builtins.catalog import builtin_primitives
    from albert_tools.engine.model.failure import Failure
    from albert_tools.store.homes import Homes
    from albert_tools.store.tools import TinyToolStore

    found = [p.name for p in builtin_primitives()]
    try:
        homes = Homes.resolve()
        found += [s.name for s in TinyToolStore(homes.tools, lambda: homes.cache).list()]
    except Failure:
        pass
    return [name for name in found if name.startswith(prefix)]
