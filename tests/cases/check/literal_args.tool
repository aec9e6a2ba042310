# a text where a number is needed
def t() -> None:
    """Wait."""
    tools.sleep(seconds="1")  # error: 25 [tool-value] "sleep does not take this value: seconds: expected float, got str "1""
---
# a positional number out of its bounds
def t() -> str:
    """Read."""
    return tools.read_file("a.txt", 0)  # error: 37 [tool-value] "read_file does not take this value: offset: must be 1 or more, is 0"
---
# a path out of the workspace
def t() -> str:
    """Read."""
    return tools.read_file(path="a/../b")  # error: [tool-value] "read_file does not take this value: path: must not contain '..'; write the path from the workspace down"
---
# a wrong value inside a nested literal
def t() -> dict:
    """Ask."""
    return tools.http_request(url="https://a.example/", headers={"a": 1})  # error: 65 [tool-value] "http_request does not take this value: headers.a: expected str | {secret: str, prefix?: str}, got int 1"
---
# an unknown choice gets the nearest one
def t() -> dict:
    """Ask."""
    return tools.http_request(url="https://a.example/", method="put")  # error: 64 [tool-value] "http_request does not take this value: method: "put" is not one of the choices; did you mean "PUT"?"
    # hint: "write "PUT""
---
# literals that match the parameters
PATH = "a"

def t(seconds: float, name: str) -> list:
    """Call."""
    tools.sleep(seconds=seconds)
    tools.sleep(seconds=1)
    tools.sleep(seconds=+0.5)
    tools.read_file(path=f"{name}.txt", limit=None)
    tools.http_request("https://a.example/", "GET", None, {})
    return [tools.read_file(path=PATH, offset=len(name))]
