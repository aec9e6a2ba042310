import json


def ticket_title(number: int) -> str:
    """Return the title of a ticket at tickets.example.org, with the key of the owner."""
    key = {"authorization": {"secret": "TICKETS_KEY", "prefix": "Bearer "}}
    answer = tools.http_request(url=f"https://tickets.example.org/api/{number}", headers=key)
    return str(json.loads(answer["body"])["title"])
