"""Judges the flows in manifests by the rules about flows.

A flow leads from the output of one planned call to an argument of another one, directly or through calls in between. The rules
decide about it before the tool runs. At run time only one thing is added: the values that the manifest leaves open. So a call whose
argument is fixed by the program's text and by its caller's arguments carries no flow, and a rule on paths is applied when the path
is known.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from albert_tools.engine.model.batched_calls import batched_calls
from albert_tools.engine.model.definition import ToolDefinition, digest
from albert_tools.engine.model.fixed_hosts import fixed_hosts
from albert_tools.engine.model.manifest import ANY_NAME, Manifest, Origin, PlannedCall, Value, call_of, values_in
from albert_tools.engine.model.overlaps import delays, feeds
from albert_tools.engine.model.redaction import redacted_text
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.fixed_arguments import Server, is_fixed, is_host_fixed, servers_in, takes_outputs
from albert_tools.engine.policy.flow_rules import ARGUMENTS, SEEN, TELLS, FlowRule, seen_in
from albert_tools.engine.policy.host_rules import host_of, lists_host
from albert_tools.engine.policy.layers import Layer, written_at
from albert_tools.engine.policy.path_patterns import PathPatterns

#: The most manifests whose flows are cached. If there are more, the cache is cleared.
_MAX_CACHED = 1000
#: The most characters of a value in a message.
_MAX_SHOWN = 200


class Flow(NamedTuple):
    """A flow that a rule is about, from the output of the planned call `start` to an argument of the planned call `end`.

    `certain` is False if the rule names paths and the path of `start` is known only at run time. `by_control`: the output decides
    which value the argument has, or whether the call is made. In the second case `argument` is empty. `by_link`: only by
    a link can the file that is written be the one that is read.
    """

    rule: FlowRule
    start: int
    end: int
    argument: str
    certain: bool = True
    by_control: bool = False
    by_link: bool = False
    #: The planned calls that start a batch in which `end` is called.
    starters: frozenset[int] = frozenset()
    #: Those that start a batch in which `start` is called, but not `end`.
    readers: frozenset[int] = frozenset()

    @property
    def key(self) -> tuple[str, int, int, str, bool]:
        """What tells it apart from other flows. If the rule names paths, each call that reads a file is a start of its own."""
        return self.rule.place, self.start if self.rule.source.paths else -1, self.end, self.argument, self.by_control


class _Graph:
    """Which calls of a manifest depend on which others: by their arguments, (with `control`) by their conditions, or because they
    may show what the others have changed."""

    def __init__(self, manifest: Manifest, control: bool = False, by_links: bool = False) -> None:
        self._control = control
        self.inputs = [
            {o for v in c.arguments.values() for o in self.direct(v)} | set(c.control if control else ())
            for c in manifest.calls
        ]
        #: The inputs of each call that decide something about it.
        self.conditions = [set(c.control) | self.deciding(c.arguments.values()) for c in manifest.calls if control]
        for writer, reader in feeds(manifest, by_links):
            self.inputs[reader].add(f"call:{writer}")
        made = {f"call:{i}" for calls in batched_calls(manifest).values() for i in calls}
        for inputs, call in zip(self.inputs, manifest.calls, strict=True):
            if "batch" in call.uses.values():
                inputs |= made  # Its id can come from anywhere.
        if control:
            # How long a call takes depends on what it does.
            done = [frozenset(inputs) for inputs in self.inputs]
            for earlier, clock in delays(manifest):
                self.inputs[clock] |= done[earlier]
                self.conditions[clock] |= done[earlier]
        self._users: dict[Origin, list[int]] = {}
        for user, inputs in enumerate(self.inputs):
            for origin in inputs:
                self._users.setdefault(origin, []).append(user)

    def direct(self, value: Value) -> set[Origin]:
        """The origins of a value, without those behind the outputs of calls."""
        return {o for v in values_in(value) for o in (*v.data, *(v.control if self._control else ()))}

    @staticmethod
    def deciding(values: Iterable[Value]) -> set[Origin]:
        """The origins that decide which values these are."""
        return {o for value in values for v in values_in(value) for o in v.control}

    def steered(self, reached: Mapping[Origin, int]) -> dict[Origin, int]:
        """The outputs that a condition on one of these outputs changes, and all that depend on them. As `reached`."""
        steered = {
            f"call:{user}": start
            for user, inputs in enumerate(self.conditions)
            if (start := _first(reached, inputs)) is not None
        }
        return self._followed(steered)

    def reached(self, starts: Iterable[int]) -> dict[Origin, int]:
        """The outputs that depend on the outputs of `starts`, each with the call of `starts` that was found first."""
        return self._followed({f"call:{start}": start for start in starts})

    def _followed(self, starts: dict[Origin, int]) -> dict[Origin, int]:
        pending = [*starts]
        for origin in pending:
            for user in self._users.get(origin, ()):
                if f"call:{user}" not in starts:
                    starts[f"call:{user}"] = starts[origin]
                    pending.append(f"call:{user}")
        return starts

    def behind(self, origins: Iterable[Origin]) -> set[Origin]:
        """Some origins, and all on which they depend."""
        visited: set[Origin] = set()
        pending = list(origins)
        while pending:
            origin = pending.pop()
            if origin not in visited:
                visited.add(origin)
                index = call_of(origin)
                pending += self.inputs[index] if index is not None else ()
        return visited


class FlowJudge:
    """The rules about flows for one workspace. Safe to use from any thread."""

    def __init__(self, layers: Sequence[Layer], workspace: str, home: str) -> None:
        self._workspace = workspace
        self._layers = tuple(layers)
        rules = [rule for layer in layers for rule in layer.flows]
        #: The rules on manifests, and those on what a session has seen.
        self.of_manifests = tuple(r for r in rules if not r.source.session)
        self.of_sessions = tuple(r for r in rules if r.source.session)
        self._patterns = {
            r.place: PathPatterns([(p, r.place) for p in r.source.paths], workspace, home) for r in self.of_manifests
        }
        private = [(p, f"{layer.place}private_paths") for layer in layers for p in layer.private_paths]
        #: The files with private data, and the patterns as they are written.
        self.private = PathPatterns(private, workspace, home)
        self.private_patterns = frozenset(pattern for pattern, _ in private)
        self._flows: dict[str, tuple[Flow, ...]] = {}
        #: By the names, the effects, and the uses of arguments of calls.
        self._matching_rules: dict[tuple[tuple[str, ...], ...], list[FlowRule]] = {}

    def is_private(self, path: str) -> bool:
        """Whether a file has private data. `path` is absolute."""
        return self.private.match(path) is not None

    def flows(self, manifest: Manifest, version: str) -> tuple[Flow, ...]:
        """The flows in the manifest of a version that the rules deny or ask about."""
        flows = self._flows.get(version)
        if flows is None:
            if len(self._flows) > _MAX_CACHED:
                self._flows.clear()
            flows = self._flows[version] = tuple(self._find(manifest)) if self.of_manifests else ()
        return flows

    def judge_version(self, name: str, manifest: Manifest, version: str) -> list[Decision]:
        """The decisions about all flows of a version that don't depend on values at run time."""
        flows = (flow for flow in self.flows(manifest, version) if flow.certain and not flow.by_link)
        return [self._decision(name, manifest, flow) for flow in flows]

    def judge_call(
        self,
        manifest: Manifest,
        version: str,
        planned: Sequence[int],
        arguments: Mapping[str, Any],
        given: Mapping[str, Any],
        paths: Sequence[str] | None,
        has_read: Callable[[str], bool] = lambda what: False,
        definition: ToolDefinition | None = None,
        sources: Callable[[], Iterable[str]] = tuple,
    ) -> list[Decision]:
        """The decisions about one call of a program.

        Args:
            manifest: The manifest of the program.
            version: Its version.
            planned: The planned calls that this call can be.
            arguments: The arguments of the call.
            given: The arguments of the program.
            paths: The absolute paths that the call reads, or those that its batch reads; None if they are not known.
            has_read: Whether the program has read a file by a ``link``, or a file that `begun_by_link` has found for the rule with
                this digest.
            definition: The tool that is called, to find the hosts that the rules list for it.
            sources: Returns the sources of the program and of the saved tools that lead to the call. The hosts in them are known.
        """

        def is_named(server: Server) -> bool:
            is_listed = definition is not None and lists_host(self._layers, definition, server[0])
            return is_listed or any(server in servers_in(source) for source in sources())

        decisions = []
        for flow in self.flows(manifest, version):
            if flow.by_link and not has_read("link"):
                continue
            names_paths = bool(flow.rule.source.paths)
            # A flow by a link is judged where it ends, but a batch that has begun can read what is written now.
            is_begin = names_paths and (not flow.by_link or bool(flow.starters))
            if is_begin and self._named(flow, planned, paths):
                # Those of the program can choose where the output goes.
                both = {"call": arguments, "program": given}
                decisions.append(self._decision("the program", manifest, flow, both))
            elif names_paths and not (flow.by_link and has_read(flow.rule.digest)):
                continue
            elif not flow.starters.isdisjoint(planned):
                # In the run of a batch, nobody knows where its items come from.
                decisions.append(self._decision("the program", manifest, flow, arguments))
            elif flow.end in planned and self._carries(flow, manifest, planned, arguments, given, is_named):
                decisions.append(self._at(flow, manifest, arguments))
        return decisions

    def begun_by_link(
        self, manifest: Manifest, version: str, planned: Sequence[int], paths: Sequence[str] | None
    ) -> dict[str, str]:
        """The rules on paths that name a file that a call reads where a flow begins that only a link makes possible. By the digests
        of the rules, each with the file. Whether the program reads by a link is known only where the flow ends.
        """
        flows = (flow for flow in self.flows(manifest, version) if flow.by_link and flow.rule.source.paths)
        return {flow.rule.digest: named[0] for flow in flows if (named := self._named(flow, planned, paths))}

    def _named(self, flow: Flow, planned: Sequence[int], paths: Sequence[str] | None) -> list[str]:
        """The files that the flow's rule names, if the flow starts with this call. An empty name if its files are not known."""
        if flow.start not in planned and flow.readers.isdisjoint(planned):
            return []
        return [""] if paths is None else [*filter(self._patterns[flow.rule.place].match, paths)]

    def _find(self, manifest: Manifest) -> list[Flow]:
        """One flow for each rule and argument; if the rule names paths, one for each call that reads a file."""
        flows_by_key = {flow.key: flow._replace(by_link=True) for flow in self._flows_of(manifest, by_links=True)}
        flows_by_key |= {flow.key: flow for flow in self._flows_of(manifest, by_links=False)}
        batches = batched_calls(manifest)
        return [
            flow._replace(
                starters=frozenset(i for i, calls in batches.items() if flow.end in calls),
                readers=frozenset(
                    i
                    for i, calls in batches.items()
                    # If nothing is known about the batch's tool, the end can also be outside of the batch.
                    if flow.start in calls and (flow.end not in calls or manifest.given_up)
                ),
            )
            for flow in flows_by_key.values()
        ]

    def _flows_of(self, manifest: Manifest, by_links: bool) -> Iterator[Flow]:
        data, control = (_Graph(manifest, is_control, by_links) for is_control in (False, True))
        for rule in self.of_manifests:
            starts = {i: sure for i, c in enumerate(manifest.calls) if (sure := self._starts(rule, c)) is not None}
            ends = [
                (i, c) for i, c in enumerate(manifest.calls) if starts and rule.to.fits((c.tool, *c.via), c.effects)
            ]
            for group in [[start] for start in starts] if rule.source.paths else [list(starts)]:
                by_data = data.reached(group)
                by_control = control.reached(group) if rule.control else {}
                steered = control.steered(by_data) if rule.control else {}
                for end, call in ends:
                    values = [(n, v) for n, v in call.arguments.items() if rule.to.names(call.uses.get(n, ""))]
                    for argument, value in values:
                        hosts = fixed_hosts(value) if _is_destination(rule, call, argument) else None
                        # Data chooses no destination if the host is fixed. A condition chooses one if there are several.
                        start = _first(by_data, data.direct(value)) if hosts is None else None
                        if start is not None:
                            yield Flow(rule, start, end, argument, starts[start], False)
                        if hosts is None or len(hosts) > 1:
                            start = _first(by_control, control.deciding([value]))
                            start = _first(steered, data.direct(value)) if start is None else start
                            if start is not None:
                                yield Flow(rule, start, end, argument, starts[start], True)
                    start = _first(by_control, call.control)
                    if start is not None:
                        yield Flow(rule, start, end, "", starts[start], True)

    def _starts(self, rule: FlowRule, call: PlannedCall) -> bool | None:
        """Whether the output of a call certainly matches a rule; None if it can't match."""
        if not rule.source.fits((call.tool, *call.via), call.effects, call.source):
            return None
        if not rule.source.paths:
            return True
        read = [value for name, value in call.arguments.items() if call.uses.get(name) in TELLS]
        alternatives = [a for value in read for v in values_in(value) for a in v.alternatives]
        constants = {"".join(map(str, a)) for a in alternatives if isinstance(a, tuple) and _is_constant(a)}
        patterns = self._patterns[rule.place]
        if any(patterns.match(posixpath.normpath(posixpath.join(self._workspace, path))) for path in constants):
            return True
        # Another name can be a link to a file that matches.
        return False if read else None

    def _carries(
        self,
        flow: Flow,
        manifest: Manifest,
        planned: Sequence[int],
        arguments: Mapping[str, Any],
        given: Mapping[str, Any],
        is_named: Callable[[Server], bool],
    ) -> bool:
        """Whether a flow can reach this call: its argument isn't fixed."""
        if flow.by_control:
            return True
        name = flow.argument
        actual = arguments.get(name)
        values = [manifest.calls[i].arguments.get(name, Value()) for i in planned]
        is_reached = any(map(takes_outputs, values))
        if actual is None and name != ANY_NAME:
            # That there is no value is a decision, too.
            return flow.rule.control and is_reached
        if _is_host(flow, manifest):
            return not any(is_host_fixed(value, actual, given, is_named) for value in values)
        # Which of several fixed texts it is, or a truth value as a text, is a decision, too.
        if flow.rule.control and is_reached:
            return True
        # It is not known which planned call this is. Of several, one with an output in its place could give any number.
        takes_numbers = len(values) == 1 or not is_reached
        return not any(is_fixed(value, actual, given, takes_numbers) for value in values)

    def _decision(
        self, name: str, manifest: Manifest, flow: Flow, arguments: Mapping[str, Any] | None = None
    ) -> Decision:
        """The decision about a flow. A lasting answer about a call covers these arguments."""
        start, end = manifest.calls[flow.start], manifest.calls[flow.end]
        where = f"{flow.argument} of {end.tool}" if flow.argument else f"whether {end.tool} is called"
        verb = "decide" if flow.by_control else "reach"
        message = f"in {name}, the output of {_shown(start)} can {verb} {where} (line {end.line})"
        hint = f"{written_at(flow.rule.place)} forbids it; leave this flow out, or ask the owner to change the rule"
        if flow.rule.verdict == "ask":
            hint = f"{written_at(flow.rule.place)} is the rule"
        subject = f"{start.tool} to {end.tool} {digest(dict(arguments or {}))}"
        return Decision(flow.rule.verdict, flow.rule.place, "flow", message, hint, subject)

    def _at(self, flow: Flow, manifest: Manifest, arguments: Mapping[str, Any]) -> Decision:
        """The decision about a flow into an argument whose value is known."""
        decision = self._decision("the program", manifest, flow, arguments)
        # A rule on paths is about what a file holds, so no message shows it.
        if flow.by_control or flow.argument not in arguments or flow.rule.source.paths:
            return decision
        start, end = manifest.calls[flow.start], manifest.calls[flow.end]
        value = arguments[flow.argument]
        shown = redacted_text(value if isinstance(value, str) else repr(value), _MAX_SHOWN)
        message = f"{flow.argument} of {end.tool} is {shown!r}, which can come from the output of {_shown(start)}"
        return decision._replace(message=message, subject=subject_of(flow.argument, value, _is_host(flow, manifest)))

    def judge_session(
        self,
        definition: ToolDefinition,
        arguments: Mapping[str, Any],
        see: Callable[[], Mapping[str, str]],
        callers: tuple[str, ...] = (),
    ) -> list[Decision]:
        """The decisions about a call of a primitive, by hand or by the saved tools `callers`. `see` returns what its session has
        seen, with examples."""
        decisions, uses = [], definition.declared.uses
        for rule in self._matching(definition, callers):
            names = [n for n, v in arguments.items() if v not in (None, "", [], {}) and rule.to.names(uses.get(n, ""))]
            if names and (seen := see()).keys() >= set(rule.source.session):
                destinations = [n for n in names if uses.get(n) in ARGUMENTS["destination"]]
                subject = ", ".join(subject_of(n, arguments[n], uses[n] == "url") for n in destinations)
                decisions.append(_by_session(rule, seen, f"{definition.name} can pass it on", subject))
        return decisions

    def _matching(self, definition: ToolDefinition, callers: tuple[str, ...]) -> list[FlowRule]:
        """The rules on sessions that can match calls of a primitive. Most primitives have none."""
        uses = definition.declared.uses
        key = (definition.name, *callers), definition.effects, tuple(uses.values())
        matching = self._matching_rules.get(key)
        if matching is None:
            if len(self._matching_rules) > _MAX_CACHED:
                self._matching_rules.clear()
            matching = self._matching_rules[key] = [
                rule
                for rule in self.of_sessions
                if rule.to.fits(*key[:2]) and any(map(rule.to.names, ("", *uses.values())))
            ]
        return matching

    def is_given(self, manifest: Manifest, planned: Sequence[int]) -> bool:
        """Whether an argument of the program can reach one of these planned calls."""
        graph = _Graph(manifest)
        values = [v for i in planned for v in manifest.calls[i].arguments.values()]
        return any(call_of(o) is None for o in graph.behind(o for v in values for o in graph.direct(v)))

    def judge_request(
        self, name: str, manifest: Manifest, is_approved: bool, seen: Mapping[str, str]
    ) -> list[Decision]:
        """The decisions about a request for a program, by what its session has seen.

        The agent has chosen the arguments. It has also chosen the text of the program, unless a person has approved it.
        """
        decisions: list[Decision] = []
        if not seen:
            return decisions
        kinds, graph = _kinds(manifest), _Graph(manifest)
        for rule in self.of_sessions:
            for call in manifest.calls:
                values = [v for n, v in call.arguments.items() if rule.to.names(call.uses.get(n, ""))]
                behind = {kind for v in values for origin in graph.direct(v) for kind in kinds[origin]}
                steered = not is_approved or _GIVEN in behind
                is_seen = {*seen, *behind} >= set(rule.source.session)
                if values and steered and is_seen and rule.to.fits((name, call.tool, *call.via), call.effects):
                    what = f"{name} can pass it on by {call.tool} (line {call.line})"
                    decisions.append(_by_session(rule, seen, what, ""))
                    break
        return decisions


#: The mark of an origin behind which an argument of the program is.
_GIVEN = "given"


def _kinds(manifest: Manifest) -> Mapping[Origin, set[str]]:
    """What is behind each origin: kinds of `SEEN`, and `_GIVEN`."""
    graph = _Graph(manifest)
    kinds: dict[Origin, set[str]] = defaultdict(set)
    starts: dict[str, list[int]] = {kind: [] for kind in (*SEEN, _GIVEN)}
    for i, call in enumerate(manifest.calls):
        is_given = any(call_of(origin) is None for origin in graph.inputs[i])
        for kind in {*seen_in(call.effects, call.source), *([_GIVEN] if is_given else [])}:
            starts[kind].append(i)
    for kind, calls in starts.items():
        for origin in graph.reached(calls):
            kinds[origin].add(kind)
    for parameter in {o for v in _values(manifest) for o in graph.direct(v) if call_of(o) is None}:
        kinds[parameter].add(_GIVEN)
    return kinds


def _values(manifest: Manifest) -> Iterator[Value]:
    yield from (value for call in manifest.calls for value in call.arguments.values())


def _first(reached: Mapping[Origin, int], origins: Iterable[Origin]) -> int | None:
    """The start of a flow into one of these origins. The nearest one: an origin that is a start itself comes first."""
    starts = {origin: reached[origin] for origin in sorted(origins) if origin in reached}
    return next((i for o, i in starts.items() if o == f"call:{i}"), next(iter(starts.values()), None))


def subject_of(argument: str, value: Any, is_url: bool) -> str:
    """What a lasting answer about the value of an argument covers: this value; of a URL, its host."""
    return f"{argument} {(host_of(value) if is_url and isinstance(value, str) else None) or digest(value)}"


#: The kinds of `SEEN` in a sentence.
_IN_WORDS = {"private": "private data", "outside": "content from outside"}


def _by_session(rule: FlowRule, seen: Mapping[str, str], what: str, subject: str) -> Decision:
    # An agent can choose what it reads first. So the question says that this is only the first one.
    read = " and ".join(f"{_IN_WORDS[kind]} (first: {seen[kind]})" for kind in SEEN if kind in seen)
    message = f"this session has read {read}, and {what}"
    return Decision(rule.verdict, rule.place, "flow", message, f"{written_at(rule.place)} is the rule", subject)


def _is_host(flow: Flow, manifest: Manifest) -> bool:
    """Whether the rule is about a URL as a destination, which is its host."""
    return _is_destination(flow.rule, manifest.calls[flow.end], flow.argument)


def _is_destination(rule: FlowRule, call: PlannedCall, argument: str) -> bool:
    return bool(rule.to.arguments) and call.uses.get(argument) == "url"


def _is_constant(template: tuple[Any, ...]) -> bool:
    return all(isinstance(part, str) for part in template)


def _shown(call: PlannedCall) -> str:
    """A planned call in a message: ``fetch_url (web, line 3)``."""
    return f"{call.tool} ({', '.join(filter(None, (call.source, f'line {call.line}')))})"
