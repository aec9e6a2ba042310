"""A server that speaks MCP with the standard library alone, so that it starts at once and can misbehave.

Its tools are those in ``tools.json`` of the workspace. The name of a tool says what it does.
"""

import json
import os
import signal
import sys
import threading
import time
import urllib.request

#: Differs between the processes of this server.
BORN = os.urandom(8).hex()


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return f"{type(error).__name__}"


def write(path):
    with open(path, "w") as file:
        file.write("written")
    return "ok"


def fetch(url):
    try:
        return urllib.request.urlopen(url, timeout=20).read().decode()
    except Exception as error:
        return f"failed: {error}"


def later(url):
    """Fetch after the answer, and write what came of it to a file."""

    def work():
        while True:
            time.sleep(0.2)
            said = fetch(url)
            with open("later.txt", "a") as file:
                file.write(said[:40] + "\n")

    threading.Thread(target=work, daemon=True).start()
    return "soon"


def call(name, arguments):
    match name:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "huge":
            piece = "x" * 1_000_000
            sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "result": "')
            for _ in range(100):
                sys.stdout.write(piece)
            sys.stdout.write('"}\n')
            sys.stdout.flush()
        case "flood":
            while True:
                send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 100_000}})
        case "pings":
            for n in range(1_000_000):
                sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {n}, "method": "ping"}}\n')
        case "junk":
            sys.stdout.write(
                "\n\n{{{ not JSON\n[]\n" + json.dumps({"jsonrpc": "2.0", "id": 10**9, "result": {}}) + "\n"
                # A notification can't be read either, but nobody waits for it.
                '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "\\ud83d"}}\n'
            )
        case "half":
            # Half an emoji, as a text in JavaScript that was cut within one.
            sys.stdout.write(
                '{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "\\ud83d"}]}}\n'
            )
            sys.stdout.flush()
        case "hang":
            time.sleep(600)
        case "wait":
            write(arguments["path"] + ".waits")
            while not os.path.exists(arguments["path"]):
                time.sleep(0.05)
        case "fail":
            return {"content": [{"type": "text", "text": "no such customer"}], "isError": True}
        case "structured":
            return {"content": [], "structuredContent": arguments}
        case "mixed":
            link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
            return {
                "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "image/png"}, link]
            }
        case "wrong":
            return {"content": "nothing"}
    said = {
        "born": lambda: BORN,
        "wait": lambda: BORN,
        "env": lambda: os.environ.get(arguments["name"], "unset"),
        "read": lambda: read(arguments["path"]),
        "write": lambda: write(arguments["path"]),
        "fetch": lambda: fetch(arguments["url"]),
        "later": lambda: later(arguments["url"]),
    }.get(name, lambda: json.dumps(arguments))
    return {"content": [{"type": "text", "text": str(said())}]}


def answer(message):
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            about = {"name": "raw", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            if os.path.exists("hang"):
                time.sleep(600)
            with open("tools.json") as file:
                return {"tools": json.load(file)}
        case "tools/call":
            return call(params["name"], params.get("arguments", {}))
    return None


if "exit" in sys.argv:
    sys.stderr.write("\x1b[31mno configuration\n")
    sys.exit(3)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message)
    if message.get("params", {}).get("name") == "refuse" or os.path.exists("limit"):
        send({"id": message["id"], "error": {"code": -32000, "message": "the project is archived"}})
    elif result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    else:
        send({"id": message["id"], "result": result})
        if message.get("params", {}).get("name") == "last":
            break
