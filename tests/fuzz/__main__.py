"""``make fuzz MINUTES=10``: the coverage-guided run of all targets, each for an equal part of the time.

Each target starts from the committed corpus, from sources and commands of other tests, and from what earlier runs found
(`.fuzz/`). An input that fails is written to `.fuzz/`, and the exit code is 1. With ``--keep``, a few inputs that reach something new are
added to the committed corpus.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from albert_tools.engine.model import vocabulary
from tests.fuzz.targets import TARGETS
from tests.helpers.harness import chunks

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
FOUND = ROOT / ".fuzz"
#: A committed corpus shows what each target reads. What a long run finds stays in `.fuzz/`.
MAX_KEPT = 25
MAX_KEPT_BYTES = 1_500

_FLAGS = ["-timeout=30", "-rss_limit_mb=2048", "-max_len=4000", "-print_final_stats=1", "-verbosity=0"]
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
    words = [*vocabulary.BUILTINS, *vocabulary.METHODS, *vocabulary.MODULES, "tools.", "parallel(", "@tool", "@example("]
    words += ["def ", "return ", "for ", " in ", "if ", "else:", "try:", "except ", "raise ", "match ", "case ", "lambda "]
    path.write_text("".join(f'"{word}"\n' for word in words))


def _write_seeds(name: str, folder: Path) -> None:
    """Write inputs that other tests have."""
    if name in _SOURCES:
        texts = [chunk.source.strip() + "\n" for part in ("check", "run", "parse") for chunk in chunks(part)]
    elif name == "command":
        rows = tomllib.loads((ROOT / "tests/engine/shell/commands.toml").read_text("utf-8"))
        texts = [*rows["ordinary"], *rows["unknown"], *(c for found in rows["dangerous"].values() for c in found)]
    else:
        return
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text, "utf-8", errors="replace")


if __name__ == "__main__":
    numbers = [a for a in sys.argv[1:] if a != "--keep"]
    sys.exit(main(float(numbers[0]) if numbers else 10, "--keep" in sys.argv))
