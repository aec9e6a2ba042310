def retry_status() -> int:
    """Return the status of www.example.org; try three times."""
    last = ToolError("no answer")
    for _ in range(3):
        try:
            return tools.http_request(url="https://www.example.org/")["status"]
        except ToolError as error:
            last = error
    raise last
