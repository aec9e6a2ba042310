"""``make fuzz MINUTES=10``: the coverage-guided run of all targets, each for an equal part of the time.

Each target starts from the committed corpus, from sources and commands of other tests, and from what earlier runs found
(`.fuzz/`). An input that fails is written to `.fuzz/`, and the exit code is 1. With ``--keep``, a few inputs that reach something
new are added to the committed corpus.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.model import vocabulary
from tests.fuzz.targets import TARGETS
from tests.generators.choices import RandomChoices
from tests.helpers.generated_tools import generated_tools, some_program
from tests.helpers.harness import chunks

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
FOUND = ROOT / ".fuzz"
#: A committed corpus shows what each target reads. What a long run finds stays in `.fuzz/`.
MAX_KEPT = 25
MAX_KEPT_BYTES = 1_500

_FLAGS = ["-timeout=30", "-rss_limit_mb=2048", "-max_len=8000", "-print_final_stats=1", "-verbosity=0"]
#: The targets whose bytes are texts in the language.
_SOURCES = ("check", "format")


def main(minutes: float, keep: bool) -> int:
    """Run all targets. Returns the exit code."""
    FOUND.mkdir(exist_ok=True)
    _write_dictionary(FOUND / "words.dict")
    failed = [name for name in TARGETS if not _run(name, int(minutes * 60 / len(TARGETS)), keep)]
    for name in failed:
        print(f"{name} failed; the inputs are in {FOUND / name}/failed-*", file=sys.stderr)
    return 1 if failed else 0


def _run(name: str, seconds: int, keep: bool) -> bool:
    work = FOUND / name / "corpus"
    work.mkdir(parents=True, exist_ok=True)
    _write_seeds(name, FOUND / name / "seeds")
    folders = [str(work), *(str(f) for f in (CORPUS / name, FOUND / name / "seeds") if f.is_dir())]
    flags = [*_FLAGS, f"-max_total_time={seconds}", f"-artifact_prefix={FOUND / name}/failed-"]
    if name in _SOURCES:
        flags.append(f"-dict={FOUND / 'words.dict'}")
    print(f"{name}: {seconds} s", flush=True)
    passed = _target(name, *flags, *folders)
    if keep and passed:
        _keep(name, work)
    return passed


def _target(name: str, *arguments: str) -> bool:
    command = [sys.executable, "-m", "tests.fuzz.one_target", name, *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "0"}).returncode == 0


def _keep(name: str, work: Path) -> None:
    """Add inputs of a run to the committed corpus, until it is full. Their names are hashes, so the choice is random."""
    kept = CORPUS / name
    kept.mkdir(parents=True, exist_ok=True)
    for path in sorted(work.iterdir()):
        if len(list(kept.iterdir())) < MAX_KEPT and path.stat().st_size <= MAX_KEPT_BYTES:
            shutil.copy(path, kept / path.name[:12])


def _write_dictionary(path: Path) -> None:
    words = [
        *vocabulary.BUILTINS,
        *vocabulary.METHODS,
        *vocabulary.MODULES,
        "tools.",
        "parallel(",
        "@tool",
        "@example(",
    ]
    words += [
        "def ",
        "return ",
        "for ",
        " in ",
        "if ",
        "else:",
        "try:",
        "except ",
        "raise ",
        "match ",
        "case ",
        "lambda ",
    ]
    path.write_text("".join(f'"{word}"\n' for word in words))


def _write_seeds(name: str, folder: Path) -> None:
    """Write inputs that other tests have, or that the generators make."""
    folder.mkdir(exist_ok=True)
    for number, data in enumerate(_seeds(name)):
        (folder / str(number)).write_bytes(data)


def _seeds(name: str) -> Iterator[bytes]:
    match name:
        case "check" | "format":
            for part in ("check", "run", "parse"):
                yield from (chunk.source.strip().encode(errors="replace") for chunk in chunks(part))
        case "command":
            rows = tomllib.loads((ROOT / "tests/engine/shell/commands.toml").read_text("utf-8"))
            dangerous = (command for found in rows["dangerous"].values() for command in found)
            yield from (command.encode() for command in (*rows["ordinary"], *rows["unknown"], *dangerous))
        case "programs" | "mistakes":
            for seed in range(50):
                choices = RandomChoices(seed)
                some_program(choices, generated_tools(0))
                yield bytes(min(number, 255) for number in choices.made)
        case "manifest":
            catalog = generated_tools(0)
            for seed in range(30):
                made = some_program(RandomChoices(seed), catalog)
                found = analyse(check_or_raise(made.source, catalog))
                arguments = {"path": made.arguments["s"]}
                document = {"manifest": found.as_dict(), "arguments": arguments, "given": made.arguments}
                yield json.dumps(document).encode()


if __name__ == "__main__":
    numbers = [a for a in sys.argv[1:] if a != "--keep"]
    sys.exit(main(float(numbers[0]) if numbers else 10, "--keep" in sys.argv))
