import json
import re


def _refer(root: dict, schema: dict) -> dict:
    seen = []
    while "$ref" in schema:
        reference = schema["$ref"]
        if reference in seen:
            raise ToolError(f"{reference} refers to itself")
        seen.append(reference)
        schema = root
        for part in reference.removeprefix("#/").split("/"):
            schema = schema[part.replace("~1", "/").replace("~0", "~")]
    return schema


def _is(value: Any, name: str) -> bool:
    if name == "null":
        return value is None
    if isinstance(value, bool):
        return name == "boolean"
    if name == "string":
        return isinstance(value, str)
    if name == "integer":
        return isinstance(value, int)
    if name == "number":
        return isinstance(value, (int, float))
    if name == "array":
        return isinstance(value, list)
    return name == "object" and isinstance(value, dict)


def _problems(root: dict, schema: dict, value: Any, where: str) -> list[str]:
    schema = _refer(root, schema)
    found = []
    if "oneOf" in schema:
        fitting = [s for s in schema["oneOf"] if not _problems(root, s, value, where)]
        if len(fitting) != 1:
            return [f"{where}: fits {len(fitting)} of {len(schema['oneOf'])} alternatives"]
    for part in schema.get("allOf", []):
        found += _problems(root, part, value, where)
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, k) for k in kinds):
            return [f"{where}: not of type {' or '.join(kinds)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is not one of {', '.join(map(str, schema['enum']))}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            found.append(f"{where}: less than {schema['minimum']}")
        if value > schema.get("maximum", value):
            found.append(f"{where}: more than {schema['maximum']}")
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where}: does not match {schema['pattern']}")
    if isinstance(value, list):
        if "items" in schema:
            for i, item in enumerate(value):
                found += _problems(root, schema["items"], item, f"{where}[{i}]")
        if schema.get("uniqueItems") and any(value[i] == value[j] for i in range(len(value)) for j in range(i)):
            found.append(f"{where}: has an item twice")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                found.append(f"{where}: {name} is missing")
        for name, item in value.items():
            if name in properties:
                found += _problems(root, properties[name], item, f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}: {name} is not known")
    return found


@example(
    arguments={"api": "https://example.org/api.json", "requests": "r.jsonl"},
    files={"r.jsonl": '{"method": "POST", "path": "/pets/3", "body": {"name": 1, "age": -1}}\n{"method": "GET", "path": "/cats"}\n'},
    stubs={
        "http_request": {
            "status": 200,
            "body": '{"paths": {"/pets/{id}": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}}}, "components": {"schemas": {"Pet": {"type": "object", "required": ["kind"], "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}}}}}',
        }
    },
    result=[
        {"line": 1, "problems": ["body: kind is missing", "body.name: not of type string", "body.age: less than 0"]},
        {"line": 2, "problems": ["no path of the API is like /cats"]},
    ],
)
def validate_requests(api: str, requests: str) -> list[dict]:
    """Check recorded requests against an OpenAPI description that a server has.

    Args:
        api: The address of the description.
        requests: A file with one JSON object a line: method, path, body.
    """
    answer = tools.http_request(url=api)
    if answer["status"] != 200:
        raise ToolError(f"{api} answered {answer['status']}")
    root = json.loads(answer["body"])
    patterns = [
        (re.compile("/".join("[^/]+" if p.startswith("{") else re.escape(p) for p in path.split("/"))), operations)
        for path, operations in root["paths"].items()
    ]
    report = []
    for number, line in enumerate(tools.read_file(path=requests).splitlines(), 1):
        request = json.loads(line)
        operations = next((o for pattern, o in patterns if pattern.fullmatch(request["path"])), None)
        if operations is None:
            problems = [f"no path of the API is like {request['path']}"]
        elif request["method"].lower() not in operations:
            problems = [f"{request['method']} is not possible for {request['path']}"]
        else:
            content = operations[request["method"].lower()].get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            problems = _problems(root, schema, request.get("body"), "body") if schema else []
        if problems:
            report.append({"line": number, "problems": problems})
    return report
