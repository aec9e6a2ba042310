"""The language server: what an editor reports and asks, and what it gets.

The editor sends the whole text at each change. Sources are small, and so there is no second copy that could differ.
"""

from __future__ import annotations

import asyncio
import sys
from threading import Event

from lsprotocol import types
from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async
from pygls.lsp.server import LanguageServer

from albert_tools import __version__
from albert_tools.engine.model.messages import describe_fault
from albert_tools.grammar.source_text import MAX_SOURCE_BYTES
from albert_tools.service import ToolService
from albert_tools.surfaces.lsp.buffers import Buffer, Buffers
from albert_tools.surfaces.lsp.completion import proposals
from albert_tools.surfaces.lsp.findings import code_actions, diagnostic
from albert_tools.surfaces.lsp.hover import hover
from albert_tools.surfaces.lsp.positions import Places
from albert_tools.surfaces.standard_streams import claim_streams

#: The ending of the names of sources. An editor that takes them for Python also opens other files here.
ENDING = ".tool"
#: Bytes of the largest message. No buffer is larger.
MAX_MESSAGE = 1 << 30


async def serve_stdio(service: ToolService, session: str | None) -> None:
    """Serve the editor that has started this process, until it leaves.

    Raises:
        SystemExit: The editor asks for the end.
    """
    source, target = claim_streams()
    server = language_server(service, session)
    with open(source, "rb") as requests, open(target, "wb") as answers:
        server.protocol.set_writer(StdoutWriter(answers))
        try:
            await run_async(Event(), _Requests(requests), server.protocol, error_handler=server.report_server_error)
        finally:
            server.buffers.close()


class _Requests(StdinAsyncReader):
    async def readexactly(self, n: int) -> bytes:
        """The content of a message. In place of one that is too large, a text that is no message; what follows is skipped up to the
        next header.
        """
        return await super().readexactly(n) if n <= MAX_MESSAGE else b"-"


class _Server(LanguageServer):
    def __init__(self, service: ToolService, session: str | None) -> None:
        super().__init__("albert", __version__, types.TextDocumentSyncKind.Full)
        self.buffers = Buffers(service, session, self._publish)

    def places_of(self, buffer: Buffer) -> Places:
        # An oversized source has only one finding, at its start.
        return Places(buffer.text[: MAX_SOURCE_BYTES + 1], self.workspace.position_encoding)

    def _publish(self, uri: str, buffer: Buffer) -> None:
        places = self.places_of(buffer)
        shown = [diagnostic(finding, places) for finding in buffer.findings]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown, buffer.version))

    def report_server_error(self, error: Exception, source: object) -> None:
        """Write a line for the log of the editor. By default, the user would be told of each malformed message."""
        print(f"albert lsp: a message can't be handled: {describe_fault(error)}", file=sys.stderr, flush=True)


def language_server(service: ToolService, session: str | None) -> _Server:
    """The server. `session` is the token of the session whose tools the sources may call; None for the owner."""
    server = _Server(service, session)
    buffers, places_of = server.buffers, server.places_of

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        if document.uri.endswith(ENDING):
            buffers.put(document.uri, document.version, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        if buffers.get(document.uri) is not None and params.content_changes:
            buffers.put(document.uri, document.version, params.content_changes[-1].text)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        # The tools that it calls may have changed.
        buffers.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        buffers.remove(params.text_document.uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        if (buffer := buffers.get(uri)) is None:
            return []
        document = types.OptionalVersionedTextDocumentIdentifier(uri, buffer.version)
        return [*code_actions(buffer.findings, places_of(buffer), document, params.range)]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def description(params: types.HoverParams) -> types.Hover | None:
        buffer = buffers.get(params.text_document.uri)
        return None if buffer is None else await hover(service, session, places_of(buffer), params.position)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "(", ","]))
    async def completion(params: types.CompletionParams) -> types.CompletionList | None:
        buffer = buffers.get(params.text_document.uri)
        if buffer is None:
            return None
        return await asyncio.to_thread(proposals, service, session, places_of(buffer), params.position)

    return server
