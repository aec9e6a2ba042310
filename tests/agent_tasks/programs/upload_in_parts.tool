import hashlib
import json


def _parts(text: str, size: int) -> list[str]:
    """Split a text into parts of at most so many bytes, between characters."""
    parts, used = [""], 0
    for c in text:
        width = len(c.encode())
        if used + width > size and parts[-1]:
            parts.append("")
            used = 0
        parts[-1] += c
        used += width
    return parts


@example(
    arguments={"path": "f.txt", "url": "http://up.test", "part_size": 4},
    files={"f.txt": "abcdefghij"},
    stubs={
        "http_request": {
            "$each": [
                {"status": 201, "headers": {"location": "/uploads/9"}, "body": ""},
                {"status": 200, "headers": {"etag": '"e2fc714c4727ee9395f324cd2e7f331f"'}, "body": ""},
                {"status": 503, "headers": {}, "body": ""},
                {"status": 200, "headers": {"etag": '"1f7690ebdd9b4caf8fab49ca1757bf27"'}, "body": ""},
                {"status": 200, "headers": {"etag": '"7bed657a775c37c2570786d0cbeefd88"'}, "body": ""},
                {"status": 200, "headers": {}, "body": '{"size": 10}'},
            ]
        }
    },
    result={"upload": "http://up.test/uploads/9", "parts": 3, "retried": 1},
)
def upload_in_parts(path: str, url: str, part_size: int = 65536, attempts: int = 3) -> dict:
    """Upload a text file in parts, check the hash of each, repeat parts that fail, and complete the upload; else abort it.

    Args:
        path: The file.
        url: The address of the upload service.
        part_size: The bytes of a part.
        attempts: How often to try a part.
    """
    content = tools.read_file(path=path)
    answer = tools.http_request(url=f"{url}/uploads", method="POST")
    if answer["status"] != 201:
        raise ToolError(f"no upload could be opened: {answer['status']}")
    upload = url + answer["headers"]["location"]
    retried = 0
    try:
        parts = []
        for number, text in enumerate(_parts(content, part_size), 1):
            digest = hashlib.md5(text.encode()).hexdigest()
            for attempt in range(attempts):
                answer = tools.http_request(url=f"{upload}/{number}", method="PUT", body=text)
                if answer["status"] == 200 and answer["headers"].get("etag") == f'"{digest}"':
                    break
                retried += 1
            else:
                raise ToolError(f"part {number} failed {attempts} times")
            parts.append({"number": number, "md5": digest})
        answer = tools.http_request(url=f"{upload}/complete", method="POST", body=json.dumps({"parts": parts}))
        if answer["status"] != 200:
            raise ToolError(f"the upload could not be completed: {answer['status']}")
    except ToolError:
        tools.http_request(url=upload, method="DELETE")
        raise
    size = json.loads(answer["body"])["size"]
    if size != len(content.encode()):
        raise ToolError(f"the service has {size} bytes, not {len(content.encode())}")
    return {"upload": upload, "parts": len(parts), "retried": retried}
