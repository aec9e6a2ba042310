def check_uptime(times: int = 3) -> list[int]:
    """Ask the server uptime.example.org for its status, some times."""
    found = []
    for _ in range(min(times, 5)):
        found.append(tools.http_request(url="https://uptime.example.org/")["status"])
        tools.sleep(seconds=1)
    return found
