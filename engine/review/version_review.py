"""All that a reviewer is shown about one version, as data. The terminal and the web page only lay it out."""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct

from albert_tools.engine.authority.reviews import VersionState
from albert_tools.engine.model.definition import Json, ToolVersion, json_form
from albert_tools.engine.model.example import Example
from albert_tools.engine.model.messages import brief
from albert_tools.engine.model.visible_text import look_alikes, visible
from albert_tools.engine.review.call_graph import Node
from albert_tools.engine.review.manifest_view import Line, effects_of_lines, lines, view
from albert_tools.engine.review.planned_effects import RISKS, planned_effects
from albert_tools.engine.review.replays import Replays
from albert_tools.engine.review.sentences import sentence
from albert_tools.engine.review.undescribed import undescribed
from albert_tools.engine.review.unusual import unusual
from albert_tools.engine.review.version_changes import Changes

#: The most characters of a value that are shown on one line.
_MAX_SHOWN = 60


class ExampleRun(Struct, frozen=True):
    """An example of the source, run again. `problem` is empty if it passed.

    `expected` is the outcome that it states: ``{result}``, ``{raises}`` and the contents of ``{files}``, as far as it states them.
    `calls` are the numbers of the planned calls of the manifest that it made. `files` says what it did to files, if it deleted any.
    """

    line: int
    arguments: Mapping[str, Json]
    expected: Mapping[str, Json]
    problem: str = ""
    calls: tuple[int, ...] = ()
    files: str = ""

    def words(self) -> str:
        """The call and its expected outcome on one line: ``path="a.md", top=3 → [["the", 2]]``."""
        call = ", ".join(f"{visible(name)}={_short(value)}" for name, value in self.arguments.items()) or "no arguments"
        outcomes = [_short(self.expected["result"])] if "result" in self.expected else []
        outcomes += [f"fails with {visible(str(self.expected['raises']))}"] if "raises" in self.expected else []
        outcomes += [f"{visible(path)} is {_short(text)}" for path, text in self.expected.get("files", {}).items()]
        return f"{call} → {', '.join(outcomes) or 'ends without a failure'}"


def expected_of(example: Example) -> dict[str, Json]:
    """The outcome that an example states, see `ExampleRun`."""
    outcome: dict[str, Json] = {"result": example.result} if example.has_result else {}
    outcome |= {"raises": example.raises} if example.raises is not None else {}
    return outcome | ({"files": example.expect_files} if example.expect_files else {})


class VersionReview(Struct, frozen=True):
    """One version under review.

    Attributes:
        version: The version.
        state: Its state, who decided it, when and why.
        author: Who has defined it, in words.
        outdated: Why the version can't run; None if it can.
        listed_hosts: The fixed hosts of its requests that the owner's rules name.
        flows: Its flows that the rules deny or ask about, each as a verdict and a sentence.
        changes: What is new since the last approved version; None if no other version was approved.
        graph: The tools that it calls, see `call_graph`.
        examples: The examples of its source.
        examples_problem: Why the examples can't be run; empty if they can.
        replays: The repeated runs of the last approved version; None if there is none, or nothing is recorded.
    """

    version: ToolVersion
    state: VersionState
    author: str
    outdated: str | None = None
    listed_hosts: frozenset[str] = frozenset()
    flows: tuple[tuple[str, str], ...] = ()
    changes: Changes | None = None
    graph: tuple[Node, ...] = ()
    examples: tuple[ExampleRun, ...] = ()
    examples_problem: str = ""
    replays: Replays | None = None

    @property
    def sentence(self) -> str:
        """What the version does, in one sentence from its manifest."""
        return sentence(self.version.manifest)

    @property
    def undescribed(self) -> tuple[str, ...]:
        """What the version does and its author does not mention, see `engine.review.undescribed`."""
        return undescribed(self.version, self.listed_hosts)

    @property
    def unusual(self) -> tuple[str, ...]:
        """What is unusual about the version, see `engine.review.unusual`."""
        return unusual(self.version.manifest, self.listed_hosts)

    @property
    def lines(self) -> list[Line]:
        """The manifest for people."""
        return lines(self.version.manifest)

    @property
    def untried(self) -> tuple[str, ...]:
        """The calls that change, send or execute something and that no example makes. Empty if there are no examples.

        A call counts as made if an example made one that it allows, also if a stub answered.
        """
        manifest = self.version.manifest
        if not self.examples:
            return ()
        made = {number for example in self.examples for number in example.calls}
        missing = {number for number in range(len(manifest.calls)) if number not in made}
        untried = []
        for effect in planned_effects(manifest, among=missing):
            if effect.risk >= RISKS["write"]:
                what = "; ".join(f"{verb} {value}" for verb, value in effect.resources)
                where = f"line{'s' if len(effect.lines) > 1 else ''} {', '.join(map(str, effect.lines))}"
                untried.append(
                    f"{visible(effect.tool)} {what} ({where})" if what else f"{visible(effect.tool)} ({where})"
                )
        return tuple(untried)

    @property
    def look_alikes(self) -> str | None:
        """The letters of the source that look like others; None if there are none."""
        return look_alikes(self.version.source)

    @property
    def effects_of_lines(self) -> dict[int, tuple[str, ...]]:
        """The effects of the calls in each line of the source that makes calls."""
        return effects_of_lines(self.version.manifest)

    def as_dict(self) -> dict[str, Json]:
        """The JSON form."""
        d = self.version.definition
        return {
            "name": d.name,
            "version": d.version,
            "signature": d.signature(),
            "created": self.version.created,
            "author": self.version.author,
            "defined_by": self.author,
            "state": self.state.state,
            "by": self.state.by,
            "why": self.state.why,
            "since": self.state.time,
            "outdated": self.outdated,
            "sentence": self.sentence,
            "undescribed": list(self.undescribed),
            "unusual": list(self.unusual),
            "manifest": view(self.version.manifest),
            "look_alikes": self.look_alikes,
            "flow_rules": [{"verdict": verdict, "message": message} for verdict, message in self.flows],
            "changes": json_form(self.changes),
            "graph": json_form(self.graph),
            "examples": [
                {
                    "line": e.line,
                    "arguments": dict(e.arguments),
                    "expected": dict(e.expected),
                    "problem": e.problem,
                    "files": e.files,
                }
                for e in self.examples
            ],
            "untried": list(self.untried),
            "examples_problem": self.examples_problem,
            "replays": self.replays.as_dict() if self.replays is not None else None,
            "source": self.version.source,
        }


def _short(value: Json) -> str:
    return visible(brief(json.dumps(value, ensure_ascii=False), _MAX_SHOWN))
