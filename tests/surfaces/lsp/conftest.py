"""The language server as an editor meets it: the real command, and a client that sends messages or anything else."""

from __future__ import annotations

import json
import os
import select
from typing import Any

from tests.surfaces.conftest import PATIENCE, Albert

#: The address of a source. There is no such file.
URI = "file:///sources/a.tool"


class Editor:
    """A connection to `albert lsp`. `encodings` are those of positions that it offers, the best first."""

    def __init__(self, albert: Albert, *encodings: str, env: dict[str, str] | None = None) -> None:
        self.server = albert.serve("lsp", pipes="stdin stdout stderr", env=env)
        self.to, self.back, self.log = self.server.stdin, self.server.stdout, self.server.stderr
        self._received = b""
        self._asked = 0
        self._told: list[dict[str, Any]] = []
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        self.abilities = self.ask("initialize", processId=None, rootUri=None, capabilities=general)["capabilities"]
        self.tell("initialized")

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.to.write(data)
        self.to.flush()

    def send_body(self, body: bytes) -> None:
        """Send bytes as the content of a message."""
        self.send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self.send_body(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its result."""
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self.send_body(json.dumps(message).encode())
        while (answer := self._receive()).get("id") != self._asked:
            self._told.append(answer)
        return answer["result"]

    def _receive(self) -> dict[str, Any]:
        head = self._read(lambda: self._received.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in self._received else None)
        (size,) = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")]
        return dict(json.loads(self._read(lambda: size)))

    def _read(self, size: Any) -> bytes:
        while (wanted := size()) is None or len(self._received) < wanted:
            assert select.select([self.back], [], [], PATIENCE)[0], "the server does not answer"
            data = os.read(self.back.fileno(), 1 << 20)
            assert data, "the server has ended"
            self._received += data
        found, self._received = self._received[:wanted], self._received[wanted:]
        return found

    def published(self) -> dict[str, Any]:
        """The next findings that the server publishes."""
        published = self._told.pop(0) if self._told else self._receive()
        assert published["method"] == "textDocument/publishDiagnostics", published
        return dict(published["params"])

    def open(self, text: str, uri: str = URI) -> None:
        """Open a source."""
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def change(self, text: str, version: int) -> None:
        """Change the source."""
        self.tell(
            "textDocument/didChange", textDocument={"uri": URI, "version": version}, contentChanges=[{"text": text}]
        )

    def findings(self) -> list[dict[str, Any]]:
        """The next findings about the source."""
        return list(self.published()["diagnostics"])

    def at(self, method: str, line: int, character: int, uri: str = URI) -> Any:
        """The answer about a place."""
        position = {"line": line, "character": character}
        return self.ask(f"textDocument/{method}", textDocument={"uri": uri}, position=position)

    def described(self, line: int, character: int) -> str | None:
        """The description of what is at a place."""
        found = self.at("hover", line, character)
        return None if found is None else str(found["contents"]["value"])

    def proposed(self, text: str) -> list[dict[str, Any]]:
        """What is proposed at the end of the source, if it is this text."""
        self.change(text, 2)
        *before, last = text.split("\n")
        return list(self.at("completion", len(before), len(last.encode("utf-16-le")) // 2)["items"])

    def fixes(self, line: int, character: int) -> list[dict[str, Any]]:
        """The fixes that are offered at a place."""
        place = {"line": line, "character": character}
        asked = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
        return list(self.ask("textDocument/codeAction", textDocument={"uri": URI}, **asked))

    def leave(self) -> int:
        """End the server as an editor does. Returns its exit code."""
        self.ask("shutdown")
        self.tell("exit")
        return self.server.wait()
