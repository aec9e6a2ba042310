"""Answers of tools for generated programs: values of the tool's schema that keep what the primitive declares, or failures.

The same call has the same answer. `changed` is a planned call whose answers are different: that is how tests find out what depends
on them.
"""

from __future__ import annotations

import json
import posixpath
import random
from dataclasses import dataclass
from typing import Any

from albert_tools.engine.model.definition import ToolDefinition
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.output_facts import contradiction

_TEXTS = ["text", "", "a", "b/c.txt", "docs/a.txt", "../x", "k=v, w", "one\ntwo\n", "https://example.org/x", "ä", "7"]
_NAMES = ["a", "b.txt", "c/d.txt", "e.bak", "f g"]
_ANY = [None, 3, "text", [1, "b"], {"path": "a", "exit_code": 0}, 2.5, True]
_CODES = ["not_found", "permission_denied", "timeout", "io_error"]


@dataclass(frozen=True)
class Answers:
    """The answers in one run.

    Attributes:
        seed: Other seeds have other answers, and fail more or less often: never, or in one of four or eight calls.
        changed: The places (`recorded_run.Place`) with different answers.
        steady: Whether all calls of a tool fail, or none. Then changed arguments or answers change no success into a failure.
            Manifests don't say what decides whether a call fails.
    """

    seed: int
    changed: frozenset[Any] = frozenset()
    steady: bool = False

    def answer(self, definition: ToolDefinition, arguments: dict[str, Any], place: Any = None) -> Any:
        """The answer to a call.

        Raises:
            Failure: The answer is a failure.
        """
        choose = random.Random(
            json.dumps([self.seed, place in self.changed, definition.name, arguments], sort_keys=True)
        )
        fate = random.Random(f"{self.seed} {definition.name}") if self.steady else choose
        often = [0, 0, 8, 4][self.seed % 4]
        if often and fate.randrange(often) == 0:
            code = fate.choice(_CODES)
            message = f"{definition.name} did not work ({fate.randrange(7)})"
            raise Failure(code, message, tool=definition.name, retryable=fate.random() < 0.5)
        given = definition.with_defaults(arguments)
        answer = _value(choose, definition, given, definition.result, "")
        wrong = contradiction(definition, given, answer, posixpath.normpath)
        if wrong is not None and not self.steady:  # the pipeline refuses such an answer, too
            raise Failure("internal_error", wrong, tool=definition.name)
        return answer


def _value(choose: random.Random, d: ToolDefinition, arguments: dict[str, Any], schema: Any, path: str) -> Any:
    fact = d.declared.outputs.get(path, "")
    if "enum" in schema:
        return choose.choice(schema["enum"])
    if "anyOf" in schema:
        return _value(choose, d, arguments, choose.choice(schema["anyOf"]), path)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = choose.choice(kind)
    match kind:
        case "string":
            return _text(choose, arguments, fact)
        case "integer":
            return choose.choice([0, 1, 2, 5, 100])
        case "number":
            return choose.choice([0, 1.5, 1700000000.25])
        case "boolean":
            return choose.random() < 0.5
        case "null":
            return None
        case "array":
            # No fact allows fewer than one item.
            count = choose.randrange(2 if fact else 4)
            return [_value(choose, d, arguments, schema.get("items", {}), f"{path}[*]") for _ in range(count)]
        case "object":
            found = {
                key: _value(choose, d, arguments, inner, f"{path}.{key}")
                for key, inner in schema.get("properties", {}).items()
                if key in schema.get("required", ()) or choose.random() < 0.5
            }
            more = schema.get("additionalProperties")
            if isinstance(more, dict):
                found |= {
                    name: _value(choose, d, arguments, more, f"{path}.*")
                    for name in choose.sample(["x", "y", "z w"], 2)
                }
            return found
    return choose.choice(_ANY)


def _text(choose: random.Random, arguments: dict[str, Any], fact: str) -> str:
    word, _, of = fact.partition(" ")
    match word:
        case "same":
            return posixpath.normpath(str(arguments[of.removeprefix("as ")]) or ".")
        case "below":
            return _below(choose, str(arguments[of]))
        case "word":
            return choose.choice(["abc", "x-1", "A_b"])
        case "number":
            return str(choose.choice([0, -3, 1.5]))
    return choose.choice(_TEXTS)


def _below(choose: random.Random, folder: str) -> str:
    """A path below a folder in its normal form, as primitives write it."""
    name = choose.choice(_NAMES)
    return posixpath.normpath(f"{folder or '.'}/{name}")
