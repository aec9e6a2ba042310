"""An agent in one page: message, tool calls, execution, injection of the results, repeat, persistence.

In the first conversation the agent looks for a tool that replaces a text in files, finds none and writes one. Its first attempt is
refused, and it corrects the source. In the middle the process "dies", and another one continues from the saved conversation. In a
later conversation, with a session of its own, the agent finds the tool and uses it without being told.

The model is a script, so that the example runs everywhere. It only sees the messages, like any model: replace `scripted_model` by a
function that sends them to a provider. Run it with ``python examples/agent.py``. All its files are in a temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albert_tools import Failure, SyncToolService, ToolInvocationParser, ToolResult

#: A model gets the system prompt and the messages, and returns its answer.
Message = dict[str, str]
Model = Callable[[str, list[Message]], str]

#: How many answers the agent gets for one message of the user.
ROUNDS = 10

HOW_TO_CALL = """
To call a tool, write <tool_call>{"name": "…", "arguments": {…}}</tool_call> in your answer. The next message has the result.
You may call:
"""


class Conversation:
    """A conversation in a file. It is saved after each message, with the token of its session. Another process can continue it."""

    def __init__(self, service: SyncToolService, path: Path, model: Model) -> None:
        self.service, self.path, self.model = service, path, model
        if path.exists():
            saved = json.loads(path.read_text(encoding="utf-8"))
            self.token, self.messages = saved["token"], saved["messages"]
        else:
            _, self.token = service.open_session(path.stem)
            self.messages = []

    def add(self, role: str, content: str) -> None:
        """Append a message and save the conversation. The file replaces the older one as a whole. Only its owner may read it."""
        self.messages.append({"role": role, "content": content})
        new = self.path.with_suffix(".new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"token": self.token, "messages": self.messages}, file)
        new.replace(self.path)

    def system_prompt(self) -> str:
        """The guide to writing tools, and the tools that this session is offered."""
        specs = self.service.tool_specs("json-schema", session=self.token)
        lines = [json.dumps({key: spec[key] for key in ("name", "description", "parameters")}) for spec in specs]
        return "\n".join([self.service.guide(session=self.token), HOW_TO_CALL, *lines])

    def ask(self, text: str) -> str:
        """Send a message of the user. Returns the answer."""
        self.add("user", text)
        return self.go_on()

    def go_on(self, rounds: int = ROUNDS) -> str:
        """Let the model answer until it makes no more calls, at most `rounds` times. Returns its last answer."""
        system = self.system_prompt()
        for _ in range(rounds):
            if self.messages[-1]["role"] != "assistant":
                self.add("assistant", self.model(system, self.messages))
            answer = self.messages[-1]["content"]
            calls = ToolInvocationParser.parse(answer)
            if not calls:
                return answer
            results = [self.call(number, call) for number, call in enumerate(calls)]
            self.add("user", "\n".join(results))
        return ""

    def call(self, number: int, call: Any) -> str:
        """Make one call, or say what is wrong with it. Returns the text for the model.

        The key makes a repetition harmless: if the process dies between the call and its result, the call is not made twice.
        """
        if isinstance(call, Failure):
            return injected(ToolResult("", error=call))
        key = f"{self.path.stem} {len(self.messages)} {number}"
        result = self.service.invoke(call.tool, call.arguments, session=self.token, dedupe_key=key)
        print(f"  {call.tool}: {'ok' if result.ok else result.error.code}")
        return injected(result)


def injected(result: ToolResult) -> str:
    """A result as the model reads it. Each < is escaped, so the output of a tool can't look like a call."""
    if result.error is None:
        said = {"ok": True, "output": result.output}
    else:
        said = {"ok": False, "error": f"{result.error.code}: {result.error.message}", "hint": result.error.hint}
    return f"<tool_result>{json.dumps(said).replace('<', chr(92) + 'u003c')}</tool_result>"


# The script

DRAFT = '''
def find_and_replace(path: str, find: str, replace: str) -> int:
    """Replace a text in a file. Returns how often it occurred.

    Args:
        path: The file.
        find: The text to look for.
        replace: The new text.
    """
    text = open(path).read()
    tools.write_file(path=path, content=text.replace(find, replace))
    return text.count(find)
'''
CORRECTED = DRAFT.replace("open(path).read()", "tools.read_file(path=path)")


def scripted_model(system: str, messages: list[Message]) -> str:
    """What a model would do: search, write a tool if there is none, correct it, run it, and report."""
    task = [m["content"] for m in messages if not m["content"].startswith("<tool_result>")]
    path, find, replace = re.findall(r"'(.+?)'", next(text for text in task if text.startswith("In ")))
    last = messages[-1]["content"]
    if not last.startswith("<tool_result>"):
        return "Is there a tool for this?" + tool_call("search_tools", query="replace text file")
    result = json.loads(last.removeprefix("<tool_result>").removesuffix("</tool_result>"))
    if not result["ok"]:
        # The refusal says what to write instead.
        assert "tools.read_file" in result["error"], result
        return "I correct it." + tool_call("define_tool", source=CORRECTED)
    output = result["output"]
    if isinstance(output, int):
        return f"I replaced {find!r} {output} times in {path}."
    found = [output["name"]] if "version" in output else []
    found += [tool["name"] for tool in output.get("tools", []) if tool["kind"] == "composite"]
    if not found:
        return "There is none, so I write one." + tool_call("define_tool", source=DRAFT)
    arguments = {"path": path, "find": find, "replace": replace}
    return f"I use {found[0]}." + tool_call("run_tool", name=found[0], arguments=arguments)


def tool_call(name: str, /, **arguments: Any) -> str:
    """A call as a model writes it."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def main() -> None:
    """Have both conversations."""
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(temporary).resolve()
        (top / "project" / ".albert").mkdir(parents=True)
        notes, todo = top / "project" / "notes.md", top / "project" / "todo.md"
        notes.write_text("a cat and a cat\n")
        todo.write_text("buy milk\n")

        print("The first conversation:")
        with SyncToolService.open(home=top / "home", workspace=top / "project") as service:
            first = Conversation(service, top / "first.json", scripted_model)
            first.add("user", "In 'notes.md', replace 'cat' by 'dog'.")
            first.go_on(rounds=2)
        print("The process ends. Another one continues:")
        with SyncToolService.open(home=top / "home", workspace=top / "project") as service:
            print(Conversation(service, top / "first.json", scripted_model).go_on())
        print(f"notes.md: {notes.read_text()}", end="")

        print("A later conversation:")
        with SyncToolService.open(home=top / "home", workspace=top / "project") as service:
            later = Conversation(service, top / "later.json", scripted_model)
            print(later.ask("In 'todo.md', replace 'milk' by 'oat milk'."))
        print(f"todo.md: {todo.read_text()}", end="")


if __name__ == "__main__":
    main()
