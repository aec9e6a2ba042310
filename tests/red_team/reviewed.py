"""The composites of this folder, saved and reviewed. Run as a program, it prints the reviews in a random order, without sources.

A file has one tool, or several separated by ``---`` lines. The last one is reviewed. If an earlier one has the same name, it is the
approved version before it; all others are tools that it calls.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from albert_tools import SyncToolService
from albert_tools.engine.review.version_review import VersionReview

HERE = Path(__file__).parent
FILES = {file.stem: file for file in sorted((HERE / "composites").glob("*.tool"))}
ANSWERS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "answers.toml").read_text("utf-8"))


@contextmanager
def reviewing(folder: Path) -> Iterator[SyncToolService]:
    """A service in which all composites are saved."""
    (folder / "work").mkdir()
    with SyncToolService.open(home=folder / "home", workspace=folder / "work") as service:
        for file in FILES.values():
            *earlier, last = re.split(r"^---\n", file.read_text("utf-8"), flags=re.MULTILINE)
            for source in earlier:
                if service.define(source).name == file.stem:
                    service.approve(file.stem, "the owner")
            service.define(last)
        yield service


def text_of(review: VersionReview) -> str:
    """What a reviewer reads about a version, except its source and its docstring."""
    found = [review.version.definition.signature().partition(" ->")[0], review.sentence]
    found += [f"unusual: {text}" for text in review.unusual]
    if review.undescribed:
        found.append(f"not in its description: {'; '.join(review.undescribed)}")
    for line in review.lines:
        found.append(f"{'  ' * line.indent}{f'{line.name}: ' if line.name else ''}{line.text}")
    if review.look_alikes:
        found.append(f"look-alikes: {review.look_alikes}")
    if review.changes is not None:
        found += [change.text for change in review.changes.manifest or ()]
    return "\n".join(found)


def main() -> None:
    """Print all reviews in a random order."""
    with tempfile.TemporaryDirectory() as folder, reviewing(Path(folder)) as service:
        names = [*FILES]
        random.shuffle(names)
        for name in names:
            review = service.review(name)
            sys.stdout.write(f"{review.version.definition.description}\n{text_of(review)}\n\n")


if __name__ == "__main__":
    main()
