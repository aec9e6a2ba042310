import re


def _expand(text: str, variables: dict, depth: int = 0) -> str:
    if depth > 20:
        raise ToolError(f"{text} refers to itself")
    return re.sub(r"\$[({](\w+)[)}]", lambda m: _expand(variables.get(m.group(1), ""), variables, depth + 1), text)


def _parse(text: str) -> tuple[dict, dict]:
    variables, rules = {}, {}
    targets = []
    for line in re.sub(r"\s*\\\n\s*", " ", text).split("\n"):
        if line.startswith("\t"):
            for target in targets:
                rules[target]["commands"].append(_expand(line.strip(), variables))
            continue
        line = line.split("#")[0].strip()
        if not line:
            continue
        if match := re.fullmatch(r"(\w+)\s*(\?|\+|:)?=\s*(.*)", line):
            name, how, value = match.groups()
            if how == "+":
                variables[name] = (variables.get(name, "") + " " + value).strip()
            elif how == ":":
                variables[name] = _expand(value, variables)
            elif how != "?" or name not in variables:
                variables[name] = value
        elif ":" in line:
            left, _, right = _expand(line, variables).partition(":")
            targets = left.split()
            for target in targets:
                rule = rules.setdefault(target, {"needs": [], "commands": []})
                rule["needs"] += [n for n in right.split() if n != "|"]
    return rules, variables


@example(
    arguments={"path": "Makefile", "goal": "all"},
    files={"Makefile": "CC = gcc\nOBJ = a.o \\\n  b.o\nall: app # the goal\napp: $(OBJ)\n\t$(CC) -o app $(OBJ)\na.o b.o: h.h\n\t${CC} -c\n"},
    result=[
        {"target": "a.o", "commands": ["gcc -c"]},
        {"target": "b.o", "commands": ["gcc -c"]},
        {"target": "app", "commands": ["gcc -o app a.o b.o"]},
        {"target": "all", "commands": []},
    ],
)
@example(arguments={"path": "Makefile", "goal": "a"}, files={"Makefile": "a: b\nb: a\n"}, raises="tool_error")
def build_order(path: str, goal: str) -> list[dict]:
    """List what make would build for a goal, in order, with the commands.

    Args:
        path: The Makefile.
        goal: The target to build.
    """
    rules, _ = _parse(tools.read_file(path=path))
    if goal not in rules:
        raise ToolError(f"no rule for {goal}")
    order, state = [], {}

    def visit(target, chain):
        if state.get(target) == "done" or target not in rules:
            return
        if state.get(target) == "open":
            raise ToolError("a cycle: " + " -> ".join(chain[chain.index(target):] + [target]))
        state[target] = "open"
        for need in rules[target]["needs"]:
            visit(need, chain + [target])
        state[target] = "done"
        order.append({"target": target, "commands": rules[target]["commands"]})

    visit(goal, [])
    return order
