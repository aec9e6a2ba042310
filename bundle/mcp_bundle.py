"""Makes what hosts and registries of MCP servers install Albert Tools from, in `dist/`: ``make bundle``.

- `albert-tools-VERSION.mcpb`, an MCP bundle (manifest 0.4): a zip with the wheel. The host's uv installs its dependencies, and
  the host asks its user for the workspace.
- `server.json` (schema 2025-12-11), which the registry of MCP servers takes after the wheel is on the package index.

A registry accepts a name only from the owner of its first part: ``make bundle NAMESPACE=io.github.ada``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SUMMARY = "An agent writes tools at run time, safely: checked, reviewed by a person, run in a sandbox."
COMMAND = ("albert", "mcp", "--workspace")


def main(namespace: str) -> None:
    """Build the wheel, then the two files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dist = ROOT / "dist"
    wheel = dist / f"albert_tools-{project['version']}-py3-none-any.whl"
    wheel.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", dist, ROOT], check=True)
    bundle = dist / f"{project['name']}-{project['version']}.mcpb"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("manifest.json", json.dumps(manifest(project), indent=2))
        packed.writestr("pyproject.toml", environment(project, wheel.name))
        packed.writestr("server.py", "from albert_tools.surfaces.cli.main import main\n\nraise SystemExit(main())\n")
        packed.write(wheel, wheel.name)
        packed.write(ROOT / "LICENSE", "LICENSE")
    registered = dist / "server.json"
    registered.write_text(json.dumps(server(project, namespace), indent=2) + "\n")
    for made in (bundle, registered):
        print(f"{made.relative_to(ROOT)}  {made.stat().st_size:,} bytes")


def manifest(project: dict[str, Any]) -> dict[str, Any]:
    """The manifest of the bundle."""
    run = ["run", "--directory", "${__dirname}", *COMMAND, "${user_config.workspace}"]
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": "Albert Tools",
        "version": project["version"],
        "description": SUMMARY,
        "author": {"name": "The authors of Albert Tools"},
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {"type": "uv", "entry_point": "server.py", "mcp_config": {"command": "uv", "args": run}},
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": project["requires-python"]}},
        "user_config": {
            "workspace": {
                "type": "directory",
                "title": "Workspace",
                "description": "The folder in which tools may read and write files.",
                "required": True,
            }
        },
    }


def environment(project: dict[str, Any], wheel: str) -> str:
    """The project that uv installs: the wheel in the bundle, with what the MCP server needs."""
    return f"""[project]
name = "albert-tools-bundle"
version = "{project["version"]}"
requires-python = "{project["requires-python"]}"
dependencies = ["albert-tools[mcp]"]

[tool.uv.sources]
albert-tools = {{ path = "{wheel}" }}
"""


def server(project: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The entry for the registry."""
    workspace = {
        "type": "named",
        "name": "--workspace",
        "description": "The folder in which tools may read and write files.",
        "format": "filepath",
        "isRequired": True,
    }
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": f"{namespace}/{project['name']}",
        "title": "Albert Tools",
        "description": SUMMARY,
        "version": project["version"],
        "packages": [
            {
                "registryType": "pypi",
                "identifier": project["name"],
                "version": project["version"],
                "runtimeHint": "uvx",
                "runtimeArguments": [
                    {"type": "named", "name": "--from", "value": f"{project['name']}[mcp]=={project['version']}"}
                ],
                "packageArguments": [
                    {"type": "positional", "value": COMMAND[0]},
                    {"type": "positional", "value": COMMAND[1]},
                    workspace,
                ],
                "transport": {"type": "stdio"},
            }
        ],
    }


if __name__ == "__main__":
    main(sys.argv[1])
