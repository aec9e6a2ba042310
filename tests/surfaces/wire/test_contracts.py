"""The contracts of the wire protocol, by number. A row is a function that shows it with a real server."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from blake3 import blake3
from jsonschema import Draft202012Validator

from albert_tools import Budget
from albert_tools.surfaces.wire import tool_pb2 as pb
from tests.evidence.strict import SCHEMA
from tests.helpers.network import answer, raw
from tests.helpers.provider import Provider, providing
from tests.surfaces.wire.conftest import PATIENCE, SERVICE, Wire
from tests.surfaces.wire.test_invariants import VALID, request

#: A client that uses the proxy from the environment, and prints what the server says.
FETCH = "python3 -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.{}:{}/x', timeout=20).read())\""
MIB = 1024 * 1024


class World(Wire):
    """A workspace that is a repository, and a model provider."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.provider = provider
        model = {"base_url": provider.base_url, "price": {"prompt": 1, "completion": 1}}
        bwrap = {"confinement": "bwrap"}
        rules = {
            "deny": ["copy_file"],
            "categories": {"execute": {"allowed_in_modes": ["NORMAL"]}},
            "tools": {
                "bash": {"allowed_hosts": ["127.0.0.1"], "ordinary_commands": ["python3 *"]},
                "git": {"allowed_operations": ["DIFF", "CLONE"], "forbidden_operations": ["PUSH"]},
                "inference": {"allowed_models": ["plain"]},
                "delete_file": {"requires_approval_in_modes": ["NORMAL"]},
                "current_time": {"rate_limit_per_hour": 1},
            },
            "primitives": {"inference": {"providers": {"here": model}}, "bash": bwrap, "git": bwrap},
        }
        super().__init__(folder, rules)
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.work)], check=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with providing() as provider:
        made = World(tmp_path_factory.mktemp("c").resolve(), provider)
        yield made
        made.close()


def read(w: World, path: str, **more: int) -> bytes:
    return bytes(w.ok(file_read=pb.FileRead(path=path, **more)).inline_result)


def wrote(w: World, path: str, content: bytes, **more: Any) -> pb.ToolResponse:
    return w.ask(file_write=pb.FileWrite(path=path, content=content, **more))


def output(success: pb.ToolSuccess) -> Any:
    assert success.content_type == "application/json"
    return json.loads(success.inline_result)


def shell(w: World, command: str, **more: Any) -> Any:
    return output(w.ok(shell_exec=pb.ShellExec(command=command, **more)))


def encoding_is_deterministic(w: World) -> None:
    units = ["calls", "wall_ms", "bytes_written"]
    one, other = (pb.ToolSuccess(budget=dict.fromkeys(order, 1)) for order in (units, units[::-1]))
    assert one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
    # The server encodes its responses so, too.
    sent = request("file_write", {"path": "deterministic"}, w.token)
    sent.dedupe_key = "deterministic"
    first, *others = (w.invoke(sent.SerializeToString()) for _ in range(3))
    assert others[0] == others[1] == pb.ToolResponse.FromString(others[0]).SerializeToString(deterministic=True)
    assert (
        pb.ToolResponse.FromString(first).success.result_hash
        == pb.ToolResponse.FromString(others[0]).success.result_hash
    )


def decoding_and_encoding_again(w: World) -> None:
    for tool in VALID:
        encoded = request(tool, {}).SerializeToString(deterministic=True)
        assert pb.ToolRequest.FromString(encoded).SerializeToString(deterministic=True) == encoded


def dedupe_key(w: World) -> None:
    wrote(w, "counted", b"")
    requests: dict[str, Any] = {"file_write": pb.FileWrite(path="counted", content=b"x", append=True)}
    first = w.ok(dedupe_key="k", **requests)
    assert output(w.ok(dedupe_key="k", **requests)) == output(first)
    assert read(w, "counted") == b"x"
    for other in (
        {"file_write": pb.FileWrite(path="counted", content=b"y", append=True)},
        {"file_read": pb.FileRead(path="counted")},
    ):
        denied = w.ask(dedupe_key="k", **other).denied
        assert (denied.rule_id, denied.rationale_code[-16:]) == ("dedupe_conflict", "_DEDUPE_CONFLICT")
    # The tools that change the agent's own tools have no recorded result.
    call = pb.ToolCall(name="run_source", arguments_json='{"source": "x"}')
    assert [v.field for v in w.ask(dedupe_key="k2", tool_call=call).denied.violations] == ["dedupe_key"]
    # Another session has keys of its own.
    assert w.ok(dedupe_key="k", session_token=w.session(), **requests)
    assert read(w, "counted") == b"xx"


def limit_and_offset(w: World) -> None:
    wrote(w, "digits", b"0123456789")
    assert read(w, "digits", limit=0) == b"0123456789"
    assert read(w, "digits", offset=0, limit=3) == b"012"
    assert read(w, "digits", offset=8, limit=5) == b"89"
    assert read(w, "digits", offset=2**64 - 1) == b""


def working_folder(w: World) -> None:
    (w.work / "sub").mkdir(exist_ok=True)
    token = w.session(cwd="sub")
    assert w.ok(session_token=token, file_write=pb.FileWrite(path="here", content=b"1"))
    assert (w.work / "sub" / "here").read_bytes() == b"1"
    ran = w.ok(session_token=token, shell_exec=pb.ShellExec(command="cat here; pwd"))
    assert output(ran)["output"] == f"1{w.work}/sub\n"


def create_only(w: World) -> None:
    assert wrote(w, "once", b"1", create_only=True).HasField("success")
    error = wrote(w, "once", b"2", create_only=True).error
    assert (error.error_code, error.retryable) == ("exists", False)
    assert read(w, "once") == b"1"


def append(w: World) -> None:
    for content in (b"\x00a", b"\xff"):
        assert wrote(w, "grown", content, append=True).HasField("success")
    assert read(w, "grown") == b"\x00a\xff"


def edits(w: World) -> None:
    for content, old, changed in ((b"one two", "two", b"one 2"), (b"two two", "two", None), (b"one", "two", None)):
        wrote(w, "edited", content)
        response = w.ask(file_edit=pb.FileEdit(path="edited", old_content=old, new_content="2"))
        assert response.HasField("success") == (changed is not None)
        assert read(w, "edited") == (changed or content)
    assert response.denied.rationale_code == "FILE_EDIT_INVALID_ARGUMENTS"


def default_timeout(w: World) -> None:
    assert shell(w, "echo done", timeout_ms=0)["output"] == "done\n"
    error = w.ask(shell_exec=pb.ShellExec(command="sleep 60", timeout_ms=200)).error
    assert error.error_code == "timeout"


def network_access(w: World) -> None:
    with raw(lambda head, c: c.sendall(answer(b"served"))) as server:
        # A session of its own: after content from outside, other calls ask.
        token = w.session()
        fetch = pb.ShellExec(command=FETCH.format(1, server.port), network_access=True)
        assert "served" in output(w.ok(session_token=token, shell_exec=fetch))["output"]
        assert server.connections == 1
        # The rules name 127.0.0.1 alone; and without network_access there is no network.
        fetch = pb.ShellExec(command=FETCH.format(2, server.port), network_access=True)
        assert output(w.ok(session_token=token, shell_exec=fetch))["exit_code"] == 1
        assert shell(w, FETCH.format(1, server.port))["exit_code"] == 1
        assert server.connections == 1


def environment(w: World) -> None:
    assert shell(w, "date +%Z", env=["TZ=UTC"])["output"] == "UTC\n"
    denied = w.ask(shell_exec=pb.ShellExec(command="true", env=["A=b", "9=x"])).denied
    assert [v.field for v in denied.violations] == ["shell_exec.env"]


def git_by_operation(w: World) -> None:
    assert output(w.ok(git_operation=pb.GitOperation(operation="DIFF")))["exit_code"] == 0
    denied = w.ask(git_operation=pb.GitOperation(operation="PUSH")).denied
    assert denied.rule_id == "tools.git.forbidden_operations"
    # The address of a remote is judged.
    clone = pb.GitOperation(operation="CLONE", args=["https://example.org/x.git"])
    assert w.ask(git_operation=clone).error.error_code == "suspended"


def inference(w: World, **more: Any) -> pb.ToolResponse:
    fields = {"provider": "here", "model": "plain", "prompt_hash": blake3(b"hello").digest(), **more}
    token = fields.pop("token", w.token)
    return w.ask(session_token=token, inference_call=pb.InferenceCall(**fields))


def temperature(w: World) -> None:
    w.put(b"hello")
    for scaled, temperature in ((70, 0.7), (0, 0), (200, 2)):
        assert inference(w, temperature_scaled=scaled).HasField("success")
        assert w.provider.requests[-1]["temperature"] == temperature
    denied = inference(w, temperature_scaled=201).denied
    assert [v.field for v in denied.violations] == ["inference_call.temperature_scaled"]


def prompts_by_hash(w: World) -> None:
    missing = inference(w, prompt_hash=blake3(b"never stored").digest())
    assert missing.error.error_code == "not_found"
    response = inference(w, prompt_hash=w.put(b"hello"), system_prompt_hash=w.put(b"be brief"))
    assert response.HasField("success"), response
    said = [m["content"] for m in w.provider.requests[-1]["messages"]]
    assert said == ["be brief", "hello"]
    # The result names the answer, so the session may read it.
    text_hash = output(response.success)["text_hash"]
    assert w.get(bytes.fromhex(text_hash[3:])).decode() == "Hello wörld 𝄞"


def limits_of_models(w: World) -> None:
    w.put(b"hello")
    assert inference(w, model="uncounted").denied.rule_id == "tools.inference.allowed_models"
    assert inference(w, provider="there").HasField("denied")
    token = w.session(budget=Budget(model_tokens=1))
    w.put(b"hello", token)
    denied = inference(w, token=token).denied
    assert (denied.rule_id, denied.rationale_code) == ("lease.budget.model_tokens", "INFERENCE_CALL_BUDGET")


def artifacts(w: World) -> None:
    digest = blake3(b"a report").digest()
    publication = {"artifact_id": "report", "content_hash": digest, "category": "report", "metadata": ["by=me"]}
    assert w.ask(artifact_publish=pb.ArtifactPublish(**publication)).error.error_code == "not_found"
    assert w.put(b"a report") == digest
    assert output(w.ok(artifact_publish=pb.ArtifactPublish(**publication)))["new"] is True
    publication["content_hash"] = w.put(b"another report")
    assert w.ask(artifact_publish=pb.ArtifactPublish(**publication)).error.error_code == "exists"


def one_response_each(w: World) -> None:
    found: dict[str, int] = {}

    def ask(n: int) -> None:
        response = w.ask(request_id=f"id {n}", file_read=pb.FileRead(path="digits"))
        found[response.request_id] = found.get(response.request_id, 0) + 1

    threads = [threading.Thread(target=ask, args=[n]) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {f"id {n}": 1 for n in range(20)}
    assert w.send(b"\xff").WhichOneof("result") == "denied"


def large_results(w: World) -> None:
    for size, inline in ((MIB, True), (MIB + 1, False)):
        content = bytes(size)
        wrote(w, "large", content)
        found = w.ok(file_read=pb.FileRead(path="large"))
        assert found.result_hash == blake3(content).digest()
        assert found.content_type == "application/octet-stream"
        assert found.inline_result == (content if inline else b"")
        assert w.get(found.result_hash) == content
    # A text that only its encoding as JSON makes large, a large text, and a large result that is no text.
    for content in (b"\x01" * MIB, b"x" * (2 * MIB)):
        wrote(w, "large", content)
        success = w.ok(tool_call=pb.ToolCall(name="read_file", arguments_json='{"path": "large"}'))
        assert success.inline_result == b""
        text = w.get(success.result_hash)
        assert (json.loads(text) if success.content_type == "application/json" else text.decode()) == content.decode()
    source = 'def many() -> Any:\n    """Make many."""\n    return {"b": "x" * 2000000, "a": 1}\n'
    w.ok(tool_call=pb.ToolCall(name="define_tool", arguments_json=json.dumps({"source": source})))
    success, again = (w.ok(dedupe_key="many", tool_call=pb.ToolCall(name="many")) for _ in range(2))
    assert success.content_type == "application/json"
    assert json.loads(w.get(success.result_hash))["a"] == 1
    assert again.result_hash == success.result_hash


def denials(w: World) -> None:
    responses = [
        w.ask(git_operation=pb.GitOperation(operation="PUSH")),
        w.ask(session_token="alb_" + "0" * 64, file_read=pb.FileRead(path="a")),
        w.ask(session_token=w.session(tools=["read_file"]), shell_exec=pb.ShellExec(command="true")),
        w.ask(session_token=w.session(budget=Budget(calls=0)), file_read=pb.FileRead(path="a")),
        w.ask(file_read=pb.FileRead(path="/etc/passwd")),
        w.ask(tool_call=pb.ToolCall(name="no_such_tool")),
        w.ask(tool_call=pb.ToolCall(name="copy_file", arguments_json='{"source": "a", "target": "b"}')),
        w.ask(tool_call=pb.ToolCall(name="define_tool", arguments_json='{"source": "x"}')),
    ]
    assert [r.denied.rationale_code for r in responses] == [
        "GIT_OPERATION_OPERATION",
        "FILE_READ_SESSION",
        "SHELL_EXEC_LEASE",
        "FILE_READ_BUDGET",
        "FILE_READ_OUTSIDE_WORKSPACE",
        "TOOL_CALL_UNKNOWN_TOOL",
        "TOOL_CALL_DENIED",
        "TOOL_CALL_INVALID_SOURCE",
    ]
    for response in responses:
        assert response.denied.rule_id
        assert re.fullmatch("[A-Z_]+", response.denied.rationale_code)
        assert " " in response.denied.message


def retryable(w: World) -> None:
    wrote(w, "kept", b"")
    waits = w.ask(tool_call=pb.ToolCall(name="delete_file", arguments_json='{"path": "kept"}')).error
    assert (waits.error_code, waits.retryable, waits.retry_after_ms) == ("suspended", True, 5000)
    # A person says no, which is a denial.
    (question,) = [a for a in w.within(lambda: w.service.approvals.all()) if a.tool == "delete_file"]
    w.within(lambda: w.service.approvals.answer(question.id, "no", "me"))
    refused = w.ask(tool_call=pb.ToolCall(name="delete_file", arguments_json='{"path": "kept"}'))
    assert refused.WhichOneof("result") == "denied", refused
    w.ask(tool_call=pb.ToolCall(name="current_time"))
    limited = w.ask(tool_call=pb.ToolCall(name="current_time")).error
    assert (limited.error_code, limited.retryable) == ("rate_limited", True)
    assert 0 < limited.retry_after_ms <= 3_600_000
    final = w.ask(file_read=pb.FileRead(path="no such file")).error
    assert (final.error_code, final.retryable, final.retry_after_ms) == ("not_found", False, 0)


def violations_name_field_and_rule(w: World) -> None:
    denied = w.ask(file_read=pb.FileRead(path="a/../b")).denied
    assert [(v.field, v.rule) for v in denied.violations] == [("file_read.path", "path_traversal")]
    # Those of our own tools have the same form.
    denied = w.ask(tool_call=pb.ToolCall(name="read_file", arguments_json='{"offset": 0}')).denied
    assert {(v.field, v.rule) for v in denied.violations} == {
        ("tool_call.arguments_json.path", "required"),
        ("tool_call.arguments_json.offset", "minimum"),
    }


def all_violations_at_once(w: World) -> None:
    bad = pb.ShellExec(command="", cwd="x" * 5000, timeout_ms=10**9, env=["x"])
    denied = w.send(pb.ToolRequest(session_token="t", shell_exec=bad).SerializeToString()).denied
    assert [(v.field, v.rule) for v in denied.violations] == [
        ("request_id", "required"),
        ("shell_exec.command", "required"),
        ("shell_exec.cwd", "max_length"),
        ("shell_exec.timeout_ms", "maximum"),
        ("shell_exec.env[0]", "one_equals"),
    ]
    assert list(w.ok(shell_exec=pb.ShellExec(command="true")).DESCRIPTOR.fields_by_name) != ["violations"]


ROWS: dict[int, Callable[[World], None]] = {
    1: encoding_is_deterministic,
    2: decoding_and_encoding_again,
    3: dedupe_key,
    4: limit_and_offset,
    5: limit_and_offset,
    6: working_folder,
    7: create_only,
    8: append,
    9: edits,
    10: edits,
    11: working_folder,
    12: default_timeout,
    13: network_access,
    14: environment,
    15: git_by_operation,
    16: git_by_operation,
    17: temperature,
    18: prompts_by_hash,
    19: limits_of_models,
    20: artifacts,
    21: artifacts,
    22: one_response_each,
    23: one_response_each,
    24: large_results,
    25: large_results,
    26: denials,
    27: denials,
    28: denials,
    29: retryable,
    30: retryable,
    31: violations_name_field_and_rule,
    32: violations_name_field_and_rule,
    33: all_violations_at_once,
    34: all_violations_at_once,
}
#: A function that shows several contracts runs once.
FIRST = list(dict.fromkeys(ROWS.values()))


def test_all_contracts_have_a_row() -> None:
    assert list(ROWS) == list(range(1, 35))


@pytest.mark.parametrize("show", FIRST, ids=lambda s: "-".join(f"C{n}" for n, f in ROWS.items() if f is s))
def test_contract(world: World, show: Callable[[World], None]) -> None:
    show(world)


def test_get_content_and_read_result_have_one_rule(world: World) -> None:
    outer = world.session()
    inner, other = world.session(within=outer), world.session()
    digest = world.put(b"of the inner session", inner)
    stored = world.service.contents(None)
    assert stored is not None
    owners = bytes.fromhex(stored.put(b"of the owner").removeprefix("b3:"))

    def answers(content: bytes, token: str) -> tuple[bool, bool]:
        """Whether each of the two ways gives the content."""
        ref = f"b3:{content.hex()}"
        call = pb.ToolCall(name="read_result", arguments_json=json.dumps({"handle": ref}))
        response = world.ask(session_token=token, tool_call=call)
        try:
            world.get(content, token)
        except grpc.RpcError as error:
            refused = error.code(), error.details()
        else:
            return response.HasField("success"), True
        assert refused == (grpc.StatusCode.NOT_FOUND, f"not_found: there is no value {ref}")
        assert response.error.message.startswith(f"there is no value {ref}")
        return response.HasField("success"), False

    assert answers(digest, inner) == answers(digest, outer) == (True, True)
    assert answers(digest, other) == answers(owners, inner) == answers(bytes(32), inner) == (False, False)


def test_content_of_others_is_not_given(world: World) -> None:
    digest = world.put(b"mine")
    with pytest.raises(grpc.RpcError) as refused:
        world.get(digest, world.session())
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError) as unknown:
        world.get(digest, "alb_nobody")
    assert unknown.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_stored_content_is_charged(world: World) -> None:
    token = world.session(budget=Budget(bytes_written=10))
    world.put(b"x" * 6, token)
    with pytest.raises(grpc.RpcError) as refused:
        world.put(b"y" * 6, token)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    leased = world.session(tools=["read_file"])
    with pytest.raises(grpc.RpcError) as denied:
        world.put(b"z", leased)
    assert denied.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert world.entries("denied")[-1].data["tool"] == "put_content"


def test_a_denied_write_stores_nothing(world: World) -> None:
    content = b"must not reach the disk"
    token = world.session(tools=["read_file"])
    denied = world.ask(session_token=token, file_write=pb.FileWrite(path="x", content=content)).denied
    assert denied.rationale_code == "FILE_WRITE_LEASE"
    assert not any(content in p.read_bytes() for p in world.home.rglob("*") if p.is_file())


def test_malformed_requests_are_in_the_ledger(world: World) -> None:
    trace = "c" * 32
    asked = [
        pb.ToolRequest(request_id="x"),
        pb.ToolRequest(
            request_id="x", session_token=world.token, tool_call=pb.ToolCall(name="sleep", arguments_json="[]")
        ),
        pb.ToolRequest(
            request_id="x",
            session_token=world.token,
            dedupe_key="k",
            tool_call=pb.ToolCall(name="define_tool", arguments_json="{}"),
        ),
    ]
    invoke = world.channel.unary_unary(f"/{SERVICE}/Invoke")
    for content in (b"\xff\xff", *(each.SerializeToString() for each in asked)):
        invoke(content, metadata=(("traceparent", trace),), timeout=PATIENCE)
    entries = [e.data for e in world.entries("malformed") if e.data["trace"][3:35] == trace]
    assert entries[0]["hash"] == f"b3:{blake3(bytes([255, 255])).hexdigest()}"
    assert entries[0]["size_bytes"] == 2
    # Those of an active session are charged to it.
    session = world.within(lambda: world.service.session_of(world.token))
    assert [e.get("session") for e in entries] == [None, None, session.id, session.id]
    assert session.used["bytes_stored"] > 200
    assert [e.get("violations") for e in entries[1:]] == [
        ["tool required", "session_token required"],
        ["tool_call invalid_arguments"],
        ["dedupe_key unsupported"],
    ]


def test_the_metadata_names_the_turn_of_a_call(world: World) -> None:
    (world.work / "turn.txt").write_text("x")
    request = pb.ToolRequest(request_id="r", session_token=world.token, file_read=pb.FileRead(path="turn.txt"))
    invoke = world.channel.unary_unary(f"/{SERVICE}/Invoke")
    invoke(request.SerializeToString(), metadata=(("turn", "7"),), timeout=PATIENCE)
    assert world.entries("call")[-1].data["turn"] == "7"


def test_the_metadata_gives_a_call_and_a_content_their_place_in_a_trace(world: World) -> None:
    metadata = (("session-token", world.token), ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"))
    (world.work / "traced.txt").write_text("x")
    read = pb.ToolRequest(request_id="r", session_token=world.token, file_read=pb.FileRead(path="traced.txt"))
    world.channel.unary_unary(f"/{SERVICE}/Invoke")(read.SerializeToString(), metadata=metadata, timeout=PATIENCE)
    chunk = pb.Chunk(data=b"x").SerializeToString()
    world.channel.stream_unary(f"/{SERVICE}/PutContent")(iter([chunk]), metadata=metadata, timeout=PATIENCE)
    assert [entry.data["trace"][3:35] for entry in world.entries("call")[-2:]] == ["a" * 32] * 2


def test_the_strict_form_of_a_result(world: World) -> None:
    def strict(**fields: Any) -> Any:
        response = world.ask(strict=True, **fields)
        data = response.strict_result or world.get(response.strict_hash)
        assert blake3(data).digest() == response.strict_hash
        document = json.loads(data)
        assert [*Draft202012Validator(SCHEMA).iter_errors(document)] == []
        return document

    (world.work / "strict.txt").write_text("x")
    done = strict(file_read=pb.FileRead(path="strict.txt"))
    assert (done["tool"], done["action"], done["policy"]["allowed"]) == ("files", "read_bytes", True)
    failed = strict(file_read=pb.FileRead(path="nothing.txt"))
    assert (failed["ok"], failed["error"]["type"], failed["request_id"]) == (False, "NotFound", "r")
    denied = strict(session_token=world.session(tools=["read_file"]), file_read=pb.FileRead(path="strict.txt"))
    assert (denied["policy"]["allowed"], denied["policy"]["rule_id"]) == (False, "lease.tools")
    cut = strict(shell_exec=pb.ShellExec(command="python3 -c \"print('x' * 3000000)\""))
    assert (cut["output"]["truncated"], cut["output"]["value"]["exit_code"]) == (True, 0)
    # A form that is too large for the response is a content, and only of this session.
    (world.work / "wide.txt").write_text("\x01" * 900_000)
    read = json.dumps({"path": "wide.txt"})
    wide = world.ask(strict=True, tool_call=pb.ToolCall(name="read_file", arguments_json=read))
    assert wide.strict_result == b""
    assert json.loads(world.get(wide.strict_hash))["output"]["value"] == "\x01" * 900_000
    with pytest.raises(grpc.RpcError):
        world.get(wide.strict_hash, world.session())
    # Nobody gets it unasked, and a request that is no call has none.
    assert world.ask(file_read=pb.FileRead(path="strict.txt")).strict_hash == b""
    assert world.ask(strict=True).strict_hash == b""
    # A large request is read in part, and the wish is in this part.
    large = strict(file_write=pb.FileWrite(path="large.bin", content=b"x" * (34 << 20)))
    assert (large["action"], large["error"]["type"]) == ("write_bytes", "ResourceExhausted")
