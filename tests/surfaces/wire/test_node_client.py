"""A client in another language: Node, which gets the messages from the server's reflection."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.surfaces.wire.conftest import Wire

PACKAGES = ("@grpc/grpc-js@1.14.7", "grpc-js-reflection-client@1.4.2")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client, beside its packages."""
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("node")
    assert npm is not None, "the tests of the surfaces need Node; `make test-surfaces` says how to install it"
    install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    return Path(shutil.copy(Path(__file__).with_name("client.js"), folder))


@pytest.mark.surfaces
@pytest.mark.parametrize("number", [0, 1], ids=["unix", "loopback"])
def test_a_client_in_node(wire: Wire, script: Path, number: int) -> None:
    done = subprocess.run(
        ["node", script, wire.addresses[number], wire.token], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "services": ["albert.tool.v1.ToolKernel", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"],
        "read": [0, 255, 10],
        "request_id": "from node",
        "ran": "HELLO",
        "violations": ["file_read.path path_traversal", "file_read.limit maximum"],
        "refused": "TOOL_CALL_INVALID_SOURCE",
        "same": True,
        "size": 3 << 20,
    }
