import base64
import hashlib


def encode_text(text: str) -> dict[str, str]:
    """Return a text as base64, with its hash."""
    data = text.encode()
    return {"base64": base64.b64encode(data).decode(), "sha256": hashlib.sha256(data).hexdigest()}
