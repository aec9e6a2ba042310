import html
import json
import re


def _lookup(scope: list, dotted: str) -> Any:
    first, *rest = dotted.split(".")
    for names in reversed(scope):
        if first in names:
            value = names[first]
            break
    else:
        raise ToolError(f"{first} is not defined")
    for part in rest:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ToolError(f"{dotted} is not defined")
    return value


def _filtered(value: Any, name: str) -> Any:
    if name == "upper":
        return str(value).upper()
    if name == "length":
        return len(value)
    if name == "escape":
        return html.escape(str(value))
    if name.startswith("join "):
        return name[5:].strip("\"'").join(str(v) for v in value)
    if name.startswith("default "):
        return value or name[8:].strip("\"'")
    raise ToolError(f"no filter named {name}")


def _expression(scope: list, text: str) -> Any:
    path, *filters = [part.strip() for part in text.split("|")]
    value = path[1:-1] if path[0] in "\"'" else _lookup(scope, path)
    for name in filters:
        value = _filtered(value, name)
    return value


def _parse(text: str) -> list:
    root = []
    stack = [("root", root, 1)]
    line = 1
    for piece in re.split(r"({{.*?}}|{%.*?%})", text):
        here = stack[-1][1]
        if piece.startswith("{{"):
            here.append({"kind": "value", "text": piece[2:-2].strip(), "line": line})
        elif piece.startswith("{%"):
            words = piece[2:-2].split()
            match words:
                case ["for", name, "in", *rest]:
                    node = {"kind": "for", "name": name, "text": " ".join(rest), "body": [], "line": line}
                    here.append(node)
                    stack.append(("for", node["body"], line))
                case ["if", *rest]:
                    node = {"kind": "if", "text": " ".join(rest), "body": [], "other": [], "line": line}
                    here.append(node)
                    stack.append(("if", node["body"], line))
                case ["else"]:
                    if stack[-1][0] != "if":
                        raise ToolError(f"line {line}: else without if")
                    _, _, opened = stack.pop()
                    stack.append(("else", stack[-1][1][-1]["other"], opened))
                case ["endfor"] | ["endif"]:
                    kind, _, opened = stack.pop()
                    wanted = "for" if words == ["endfor"] else "if"
                    if kind != wanted and not (wanted == "if" and kind == "else"):
                        raise ToolError(f"line {line}: {words[0]} closes the {kind} of line {opened}")
                case _:
                    raise ToolError(f"line {line}: {piece} is not understood")
        elif piece:
            here.append({"kind": "text", "text": piece, "line": line})
        line += piece.count("\n")
    if len(stack) > 1:
        raise ToolError(f"line {stack[-1][2]}: {stack[-1][0]} is never closed")
    return root


def _render(nodes: list, scope: list) -> str:
    out = []
    for node in nodes:
        try:
            if node["kind"] == "text":
                out.append(node["text"])
            elif node["kind"] == "value":
                out.append(str(_expression(scope, node["text"])))
            elif node["kind"] == "if":
                text = node["text"]
                negated = text.startswith("not ")
                truth = bool(_expression(scope, text.removeprefix("not ")))
                out.append(_render(node["other"] if truth == negated else node["body"], scope))
            else:
                values = _expression(scope, node["text"])
                for index, value in enumerate(values):
                    inner = {node["name"]: value, "loop": {"index": index + 1, "last": index + 1 == len(values)}}
                    out.append(_render(node["body"], scope + [inner]))
        except ToolError as error:
            if error.message.startswith("line "):
                raise
            raise ToolError(f"line {node['line']}: {error.message}") from error
    return "".join(out)


@example(
    arguments={"template": "t.txt", "data": "d.json", "target": "out.txt"},
    files={
        "t.txt": "Hi {{ user.name | upper }}!{% for i in items %}\n{{ loop.index }}. {{ i }}{% if not loop.last %},{% else %}.{% endif %}{% endfor %}\n",
        "d.json": '{"user": {"name": "ann"}, "items": ["a", "b"]}',
    },
    expect_files={"out.txt": "Hi ANN!\n1. a,\n2. b.\n"},
)
@example(
    arguments={"template": "t.txt", "data": "d.json", "target": "out.txt"},
    files={"t.txt": "\n{% if a %}", "d.json": "{}"},
    raises="tool_error",
)
def render_template(template: str, data: str, target: str) -> dict:
    """Render a template with the values of a JSON file and write the result.

    Args:
        template: The template's file: {{ value | filter }}, {% for %} and {% if %}.
        data: The JSON file with the values.
        target: The file to write.
    """
    tree = _parse(tools.read_file(path=template))
    values = json.loads(tools.read_file(path=data))
    return tools.write_file(path=target, content=_render(tree, [values]))
