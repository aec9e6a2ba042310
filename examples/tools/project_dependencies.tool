import json
import re
import tomllib


def _text(path: str) -> str | None:
    try:
        return tools.read_file(path=path)
    except ToolError as error:
        if error.code == "not_found":
            return None
        raise


def _name(requirement: str) -> str:
    return re.split(r"[\s\[<>=!~;(@]", requirement.strip())[0]


@example(
    arguments={},
    files={
        "pyproject.toml": (
            '[project]\nname = "x"\ndependencies = ["httpx>=0.27", "rich"]\n'
            '[project.optional-dependencies]\ntest = ["pytest>=8"]\n'
        ),
        "requirements.txt": "# pinned\nrich==13.0\nattrs[all]>=23 ; python_version > '3.8'\n-r more.txt\n",
        "package.json": '{"dependencies": {"left-pad": "^1.0"}}',
    },
    result={"python": ["attrs", "httpx", "pytest", "rich"], "javascript": ["left-pad"]},
)
@example(arguments={"folder": "."}, result={"python": [], "javascript": []})
def project_dependencies(folder: str = ".") -> dict[str, list[str]]:
    """List the dependencies of a project, from pyproject.toml, requirements.txt and package.json.

    Args:
        folder: The project's folder.
    """
    names = "pyproject.toml", "requirements.txt", "package.json"
    project, requirements, package = parallel(_text(f"{folder}/{name}") for name in names)
    python = set()
    javascript = set()
    if project is not None:
        table = tomllib.loads(project).get("project", {})
        groups = [table.get("dependencies", []), *table.get("optional-dependencies", {}).values()]
        python.update(_name(requirement) for group in groups for requirement in group)
    if requirements is not None:
        lines = [line.split("#")[0].strip() for line in requirements.splitlines()]
        python.update(_name(line) for line in lines if line and not line.startswith("-"))
    if package is not None:
        document = json.loads(package)
        for part in "dependencies", "devDependencies":
            javascript.update(document.get(part, {}))
    return {"python": sorted(python), "javascript": sorted(javascript)}
