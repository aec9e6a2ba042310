"""What the rules about flows decide about manifests, calls, and what a session has seen."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from albert_tools.engine.model.definition import Declared, ToolDefinition
from albert_tools.engine.model.manifest import Hole, Manifest, PlannedCall, Value
from albert_tools.engine.policy.decision import Decision
from albert_tools.engine.policy.flows import FlowJudge
from albert_tools.engine.policy.settings import Governance, read_governance

FETCH = PlannedCall(
    "fetch", ("network",), 2, source="web", arguments={"url": Value((("https://example.org/",),))}, uses={"url": "url"}
)


def judge(*asked: dict[str, Any], denied: Any = (), **more: Any) -> FlowJudge:
    rules = read_governance({"ask_flow": list(asked), "deny_flow": list(denied), **more})
    return FlowJudge(rules.layers(), "/w", "/home/user")


def rule(to: Any, control: bool = False, **source: Any) -> dict[str, Any]:
    return {"from": source, "to": to, "control": control}


def output(call: int, *others: str) -> Value:
    """A text in the output of a call, or one of some constants."""
    return Value(((Hole("output", call=call),), *((text,) for text in others)), data=(f"call:{call}",))


def send(to: Value, text: Value | None = None, **more: Any) -> PlannedCall:
    arguments = {"to": to, "text": text or Value((("hello",),))}
    return PlannedCall(
        "send", ("network",), 5, arguments=arguments, uses={"to": "destination", "text": "payload"}, **more
    )


def read(path: Value) -> PlannedCall:
    return PlannedCall("read_file", ("read",), 3, source="file", arguments={"path": path}, uses={"path": "read"})


def follow(*url: Any, control: tuple[str, ...] = (), other: str = "") -> PlannedCall:
    """A request to a URL with data of the first call in its holes."""
    value = Value((url, *([(other,)] if other else [])), data=("call:0",), control=control)
    uses = {"url": "url", "body": "payload"}
    return PlannedCall("fetch", ("network",), 4, source="web", arguments={"url": value}, uses=uses)


TWO_HOSTS = follow("https://a.example/", other="https://b.example/", control=("call:0",))
POST = replace(follow(), arguments={"url": Value((("https://a.example/",),)), "body": output(0)})


def places(decisions: list[Decision]) -> list[str]:
    return [d.rule for d in decisions]


def text(constant: str) -> Value:
    return Value(((constant,),))


def write(path: str, content: Value) -> PlannedCall:
    arguments = {"path": text(path), "content": content}
    return PlannedCall("write_file", ("write",), 3, arguments=arguments, uses={"path": "write", "content": "payload"})


ANYTHING = PlannedCall(
    "send",
    ("network",),
    arguments=dict.fromkeys(("to", "text", "*"), Value(data=("call:0",), open=True)),
    uses={"to": "destination", "text": "payload"},
)
SLEEP = PlannedCall("sleep", arguments={"seconds": output(0)})
NOW = PlannedCall("current_time", ("read",), source="clock")
MOVE = PlannedCall(
    "move_file", ("write", "delete"), arguments={"source": text("a.pem"), "target": text("b")},
    uses={"source": "delete", "target": "write"}, source="file",
)  # fmt: skip
TO_ADA = Value((("ada",),))
OF_PARAMETER = Value(((Hole("parameter", "path"),),), data=("parameter:path",))
SECRET = PlannedCall("balance", ("secret", "read"), 3)


@pytest.mark.parametrize(
    ("rules", "calls", "found"),
    [
        (rule("destination", source=["web"]), [FETCH, send(output(0))], 1),
        (rule("destination", source=["web"]), [FETCH, send(TO_ADA, output(0))], 0),
        (rule("payload", source=["web"]), [FETCH, send(TO_ADA, output(0))], 1),
        (rule({"effects": ["network"]}, source=["web"]), [FETCH, send(TO_ADA, output(0))], 1),
        (rule("destination", source=["mail"]), [FETCH, send(output(0))], 0),
        (rule({"tools": ["post"]}, source=["web"]), [FETCH, send(output(0))], 0),
        (rule({"tools": ["send"], "arguments": ["recipient"]}, tools=["fetch"]), [FETCH, send(output(0))], 1),
        (rule("url", source=["web"]), [FETCH, send(output(0))], 0),
        (rule({"effects": ["network"]}, effects=["secret"]), [SECRET, send(TO_ADA, output(0))], 1),
        # Through a call in between, and out of a list in an object.
        (rule("recipient", source=["web"]), [FETCH, read(output(0)), send(output(1))], 1),
        (rule("recipient", source=["web"]), [FETCH, send(Value(fields={"a": Value(items=output(0))}))], 1),
        # Through a file that may be the same.
        (rule("recipient", source=["web"]), [FETCH, write("a.txt", output(0)), read(text("a.txt")), send(output(2))], 1),
        (rule("recipient", source=["web"]), [FETCH, write("a.txt", output(0)), read(text("b.txt")), send(output(2))], 0),
        # How long a call takes shows in the time.
        (rule("recipient", True, source=["web"]), [FETCH, SLEEP, NOW, send(output(2))], 1),
        (rule("recipient", source=["web"]), [FETCH, SLEEP, NOW, send(output(2))], 0),
        (rule("recipient", True, source=["web"]), [FETCH, replace(SLEEP, step=(2,)), replace(NOW, step=(1,)), send(output(2))], 0),
        # Whatever moves a file has its content.
        (rule("payload", paths=["*.pem"]), [MOVE, read(text("b")), send(TO_ADA, output(1))], 1),
        # If nothing is known about the arguments, everything can reach each of them.
        (rule("recipient", source=["web"]), [FETCH, ANYTHING], 1),
        (rule("url", source=["web"]), [FETCH, ANYTHING], 0),
        (rule({"tools": ["send"]}, source=["web"]), [FETCH, ANYTHING], 3),
        # A condition is a flow only if the rule says so.
        (rule("recipient", source=["web"]), [FETCH, send(Value((("a",), ("b",)), control=("call:0",)))], 0),
        (rule("recipient", True, source=["web"]), [FETCH, send(Value((("a",), ("b",)), control=("call:0",)))], 1),
        (rule("recipient", True, source=["web"]), [FETCH, send(TO_ADA, control=("call:0",))], 1),
        # A value can come from an output and be chosen by it. The one flow doesn't hide the other.
        (
            rule("recipient", True, source=["web"]),
            [FETCH, send(Value((("a",),), data=("call:0",), control=("call:0",)))],
            2,
        ),
        # Of a URL, only the host is a destination.
        (rule("destination", source=["web"]), [FETCH, follow("https://a.example/", Hole("any"))], 0),
        (rule("destination", source=["web"]), [FETCH, follow("https://a.example", Hole("any"))], 1),
        (rule("payload", source=["web"]), [FETCH, POST], 1),
        (rule("destination", True, source=["web"]), [FETCH, follow("https://a.example/", control=("call:0",))], 0),
        (rule("destination", True, source=["web"]), [FETCH, TWO_HOSTS], 1),
        # A path that only the run shows is judged at run time.
        (rule("payload", paths=["*.pem"]), [read(Value((("a.pem",),))), send(TO_ADA, output(0))], 1),
        (rule("payload", paths=["*.pem"]), [read(Value((("a.md",),))), send(TO_ADA, output(0))], 0),
        (rule("payload", paths=["*.pem"]), [read(OF_PARAMETER), send(TO_ADA, output(0))], 0),
    ],
)  # fmt: skip
def test_a_manifest(rules: dict[str, Any], calls: list[PlannedCall], found: int) -> None:
    manifest = Manifest(calls=tuple(calls))
    assert places(judge(denied=[rules]).judge_version("t", manifest, "v")) == ["deny_flow.0"] * found


def test_a_denial_names_both_calls_and_the_rule() -> None:
    (decision,) = judge(denied=[rule("recipient", source=["web"])]).judge_version(
        "t", Manifest(calls=(FETCH, send(output(0)))), "v"
    )
    assert decision.failure("t").as_dict() == {
        **decision.failure("t").as_dict(),
        "message": "in t, the output of fetch (web, line 2) can reach to of send (line 5)",
        "hint": "`deny_flow.0` in the owner's governance.yaml forbids it; leave this flow out, or ask the owner to change the rule",
        "rule": "deny_flow.0",
    }


class TestACallOfAProgram:
    MANIFEST = Manifest(calls=(FETCH, send(output(0, "ada"))))

    def decide(
        self, flows: FlowJudge, manifest: Manifest, planned: int, arguments: Any, paths: list[str] | None = None
    ) -> list[Decision]:
        return flows.judge_call(manifest, "v", [planned], arguments, {}, paths or [])

    def test_a_value_from_outside_asks_and_says_where_it_comes_from(self) -> None:
        flows = judge(rule("destination", source=["web"]))
        (asked,) = self.decide(flows, self.MANIFEST, 1, {"to": "eve", "text": "hello"})
        assert (asked.verdict, asked.rationale) == ("ask", "flow")
        assert asked.message == "to of send is 'eve', which can come from the output of fetch (web, line 2)"
        # A lasting answer covers this value only.
        (other,) = self.decide(flows, self.MANIFEST, 1, {"to": "mallory", "text": "hello"})
        (again,) = self.decide(flows, self.MANIFEST, 1, {"to": "eve", "text": "good bye"})
        assert asked.subject == again.subject != other.subject

    def test_a_constant_of_the_program_and_the_other_calls_do_not_ask(self) -> None:
        flows = judge(rule("destination", source=["web"]))
        assert self.decide(flows, self.MANIFEST, 1, {"to": "ada", "text": "hello"}) == []
        assert self.decide(flows, self.MANIFEST, 0, {"url": "https://example.org/"}) == []

    def test_of_a_url_the_host_counts(self) -> None:
        follow = Value((("https://example.org/", Hole("output", call=0)), (Hole("output", call=0),)), data=("call:0",))
        second = PlannedCall("fetch", ("network",), 6, source="web", arguments={"url": follow}, uses={"url": "url"})
        flows, manifest = judge(rule("destination", source=["web"])), Manifest(calls=(FETCH, second))
        assert self.decide(flows, manifest, 1, {"url": "https://example.org/page"}) == []
        first, other = (self.decide(flows, manifest, 1, {"url": f"https://evil.org/{p}"})[0] for p in "ab")
        assert first.subject == other.subject == "url evil.org"

    @pytest.mark.parametrize(
        ("url", "asks"),
        [
            ("https://api.example.org/2", False),
            ("https://API.example.org:443/2", False),
            ("https://other.example.org/2", False),
            ("https://docs.example.net/2", False),
            ("https://a.docs.example.net/2", True),
            ("https://x.free.example.net/2", False),
            ("https://const.example.org/2", False),
            # Another host, also where it looks like the same one.
            ("https://evil.org/2", True),
            ("https://api.example.org.evil.org/2", True),
            ("https://api.example.org@evil.org/2", True),
            ("https://evil.org\\@api.example.org/2", True),
            ("https://evil.org/?https://api.example.org/", True),
            ("https://sub.api.example.org/2", True),
            # Another port or without encryption: another server.
            ("https://api.example.org:8443/2", True),
            ("http://api.example.org/2", True),
            ("http://local.example.org:8080/2", False),
            # Only in the middle of a text of the caller.
            ("https://middle.example.org/2", True),
            # The name of a file, or a host alone.
            ("https://readme.md/2", True),
            ("https://notes/2", True),
            ("", True),
        ],
    )
    def test_a_link_to_a_host_that_is_known_is_no_new_destination(self, url: str, asks: bool) -> None:
        rules = {"tools": {"fetch": {"allowed_hosts": ["*", "docs.example.net", "*.free.example.net"]}}}
        flows = judge(rule("destination", source=["web"]), **rules)
        follow = Value((("https://const.example.org/1",), (Hole("any"),)), data=("call:0",), open=True)
        manifest = Manifest(calls=(replace(FETCH, arguments={"url": follow}),))
        given = {
            "url": "https://api.example.org/1?x=https://evil.org/",
            "more": ["https://other.example.org", {"x": "http://local.example.org:8080"}],
            "text": "read https://middle.example.org/ and notes",
            "name": "notes",
            "path": "readme.md",
        }
        definition = ToolDefinition("fetch", "Fetch.", (), {}, ("network",), "primitive", category="network")
        found = flows.judge_call(manifest, "v", [0], {"url": url}, given, [], definition=definition)
        assert bool(found) is asks

    def test_a_rule_on_paths_judges_the_call_that_reads_the_file(self) -> None:
        flows = judge(denied=[rule("payload", paths=["*.pem"])])
        manifest = Manifest(calls=(read(OF_PARAMETER), send(TO_ADA, output(0))))
        assert places(self.decide(flows, manifest, 0, {"path": "x/a.pem"}, ["/w/x/a.pem"])) == ["deny_flow.0"]
        assert self.decide(flows, manifest, 0, {"path": "a.md"}, ["/w/a.md"]) == []

    def test_a_batch_of_a_tool_that_nobody_knows_can_call_any_tool(self) -> None:
        flows = judge(rule("recipient", source=["web"]))
        anything = Value(data=("call:0",), open=True)
        batch = PlannedCall("start_batch", arguments={"tool": anything}, uses={"tool": "tool"})
        (asked,) = self.decide(flows, Manifest(calls=(FETCH, send(output(0)), batch)), 2, {"tool": "send"})
        assert asked.rule == "ask_flow.0"


SEEN = {"private": ".env", "outside": "content of example.org"}
USES = {"to": "destination", "text": "payload"}


def sender(effects: tuple[str, ...] = ("network",), **uses: str) -> ToolDefinition:
    return ToolDefinition("send", "Send.", (), {}, effects, declared=Declared(uses=USES | uses))


class TestASession:
    shipped = FlowJudge(Governance().layers(), "/w", "/home/user")

    def by_hand(self, seen: dict[str, str], effects: tuple[str, ...] = ("network",), **arguments: Any) -> list[str]:
        return places(self.shipped.judge_session(sender(effects), arguments, lambda: seen))

    def test_private_data_content_from_outside_and_a_way_out_ask(self) -> None:
        assert self.by_hand(SEEN, text="x") == ["shipped.ask_flow.1"]
        assert self.by_hand({"private": ".env"}, text="x") == []
        assert self.by_hand({"outside": "content"}, text="x") == []
        assert self.by_hand(SEEN, ("write",), text="x") == []
        assert self.by_hand({"outside": "content"}, ("write",), to="eve") == ["shipped.ask_flow.2"]
        # The arguments of git are a part of its command.
        git = sender(("execute", "network"), to="arguments")
        assert self.shipped.judge_session(git, {"to": "--oneline"}, lambda: {"outside": "content"}) == []
        # A call without arguments passes nothing on.
        assert self.by_hand(SEEN, text="") == []

    def test_the_question_says_what_the_session_has_read(self) -> None:
        (asked,) = self.shipped.judge_session(sender(), {"text": "x"}, lambda: SEEN)
        assert asked.message == (
            "this session has read private data (first: .env) and content from outside (first: content of example.org), "
            "and send can pass it on"
        )

    def request(self, manifest: Manifest, seen: dict[str, str], is_approved: bool = False) -> list[str]:
        return places(self.shipped.judge_request("t", manifest, is_approved, seen))

    def test_a_program_that_no_person_has_approved_is_the_agents_own_text(self) -> None:
        manifest = Manifest(calls=(SECRET, send(TO_ADA, output(0))))
        outside = {"outside": "content of example.org"}
        assert self.request(manifest, outside) == ["shipped.ask_flow.1", "shipped.ask_flow.2"]
        assert self.request(manifest, {}) == []
        assert self.request(manifest, outside, is_approved=True) == []

    def test_an_approved_program_asks_if_its_arguments_can_get_out(self) -> None:
        text = Value(((Hole("parameter", "text"),),), data=("parameter:text",))
        assert self.request(Manifest(calls=(send(TO_ADA, text),)), SEEN, is_approved=True) == ["shipped.ask_flow.1"]
        assert self.request(Manifest(calls=(send(text),)), {"outside": "a page"}, is_approved=True) == [
            "shipped.ask_flow.2"
        ]


@pytest.mark.parametrize(("path", "private"), [("/w/.env", True), ("/w/a/key.pem", True), ("/w/notes.md", False)])
def test_files_with_private_data(path: str, private: bool) -> None:
    assert judge().is_private(path) is private
    assert not judge(private_paths=[]).is_private(path)


def test_a_call_of_a_program_about_which_nothing_is_known_asks() -> None:
    manifest = Manifest(calls=(FETCH, ANYTHING))
    flows = judge(rule("recipient", source=["web"]), rule({"tools": ["send"]}, source=["web"]))
    found = flows.judge_call(manifest, "v", [1], {"to": "ada", "text": "hello"}, {}, [])
    assert set(places(found)) == {"ask_flow.0", "ask_flow.1"}
