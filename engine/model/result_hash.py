"""The hash that an output is known by in records."""

from __future__ import annotations

from typing import Any


def result_hash(output: Any) -> str:
    """``b3:`` and the BLAKE3 (hex) of an output's one JSON text."""
    import msgspec
    from blake3 import blake3

    return f"b3:{blake3(msgspec.json.encode(output, order='sorted')).hexdigest()}"
