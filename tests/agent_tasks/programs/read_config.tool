import posixpath
import re


def _lines(path: str) -> list:
    joined, numbered = "", []
    start = 0
    for number, line in enumerate(tools.read_file(path=path).splitlines(), 1):
        start = start or number
        if line.endswith("\\"):
            joined += line[:-1].strip() + " "
            continue
        numbered.append((start, (joined + line.strip()).strip()))
        joined, start = "", 0
    if joined:
        numbered.append((start, joined.strip()))
    return numbered


def _load(path: str, config: dict, opened: list) -> None:
    if path in opened:
        raise ToolError(" includes ".join(opened + [path]))
    section = "main"
    for number, line in _lines(path):
        if not line or line[0] in "#;":
            continue
        if line.startswith("include "):
            other = posixpath.normpath(posixpath.join(posixpath.dirname(path), line[8:].strip()))
            _load(other, config, opened + [path])
        elif line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            config.setdefault(section, {})
        elif "=" in line:
            key, _, value = line.partition("=")
            config.setdefault(section, {})[key.strip()] = value.strip()
        else:
            raise ToolError(f"{path}:{number}: {line!r} is not understood")


def _resolve(config: dict, section: str, key: str, busy: tuple) -> str:
    if (section, key) in busy:
        raise ToolError(f"{section}:{key} refers to itself")
    if key not in config.get(section, {}):
        raise ToolError(f"{section}:{key} is not set")
    inner = busy + ((section, key),)

    def expand(match):
        name = match[1]
        other, _, other_key = name.rpartition(":")
        return _resolve(config, other or section, other_key, inner)

    return re.sub(r"\$\{([^}]+)\}", lambda match: expand(match), config[section][key])


@example(
    arguments={"path": "etc/app.conf"},
    files={
        "etc/app.conf": "name = app\ninclude db/db.conf\n[web]\nroot = /srv/${main:name}\nlogs = ${root}/logs\n",
        "etc/db/db.conf": "[db]\nurl = postgres:// \\\n  ${main:name}\n",
    },
    result={"main": {"name": "app"}, "db": {"url": "postgres:// app"}, "web": {"root": "/srv/app", "logs": "/srv/app/logs"}},
)
@example(arguments={"path": "a"}, files={"a": "include b", "b": "include a"}, raises="tool_error")
def read_config(path: str) -> dict[str, dict[str, str]]:
    """Read an INI file with includes, continued lines and ${section:key} references.

    Args:
        path: The file. An included file is relative to the file that includes it.
    """
    config = {}
    _load(posixpath.normpath(path), config, [])
    return {s: {k: _resolve(config, s, k, ()) for k in keys} for s, keys in config.items()}
