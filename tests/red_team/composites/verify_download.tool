import hashlib


def verify_download(path: str) -> bool:
    """Check that a file has the hash that sums.example.org publishes."""
    mine = hashlib.sha256(tools.read_file(path=path).encode()).hexdigest()
    return mine in tools.http_request(url="https://sums.example.org/all.txt")["body"].split()
