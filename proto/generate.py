"""Writes the Python modules of the wire protocol: ``make proto``.

The rules in `tool.proto` are options that `buf/validate/validate.proto` declares. The package protovalidate contains that file as a
descriptor, and protoc reads it from there. No package provides it as a module, so the generated module imports
`validate_descriptor`, which registers the same descriptor.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import protovalidate
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent
SOURCE = "albert/tool/v1/tool.proto"
TARGET = ROOT.parent / "surfaces" / "wire"
#: The import that protoc writes, and what replaces it.
_IMPORT = "from buf.validate import validate_pb2 as buf_dot_validate_dot_validate__pb2\n"
_INSTEAD = "from albert_tools.surfaces.wire import validate_descriptor as _\n"
_STUB_IMPORT = "from buf.validate import validate_pb2 as _validate_pb2\n"


def generate() -> dict[str, str]:
    """The generated modules: file name → text.

    Raises:
        RuntimeError: protoc has refused the file; it has printed why.
    """
    with tempfile.TemporaryDirectory() as folder:
        known = Path(folder, "known.bin")
        known.write_bytes(_descriptors().SerializeToString())
        words = ["protoc", f"--descriptor_set_in={known}", f"-I{ROOT}", f"--python_out={folder}", f"--pyi_out={folder}"]
        if protoc.main([*words, SOURCE]):
            raise RuntimeError(f"protoc refuses {SOURCE}")
        made = Path(folder, SOURCE).parent
        code = (made / "tool_pb2.py").read_text(encoding="utf-8")
        stub = (made / "tool_pb2.pyi").read_text(encoding="utf-8")
    assert _IMPORT in code
    assert _STUB_IMPORT in stub
    return {"tool_pb2.py": code.replace(_IMPORT, _INSTEAD), "tool_pb2.pyi": stub.replace(_STUB_IMPORT, "")}


def _descriptors() -> descriptor_pb2.FileDescriptorSet:
    """The descriptor of validate.proto, after those that it imports."""
    found = descriptor_pb2.FileDescriptorSet()
    pending = [protovalidate.ViolationPb.desc().file]
    while pending:
        file = pending.pop()
        found.file.append(descriptor_pb2.FileDescriptorProto.FromString(file.proto.to_binary()))
        pending += file.dependencies
    return found


if __name__ == "__main__":
    for name, text in generate().items():
        (TARGET / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{TARGET.name}/{name}\n")
