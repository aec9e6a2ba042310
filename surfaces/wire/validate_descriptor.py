"""Registers `buf/validate/validate.proto`, which the generated module needs, with the protobuf library.

The package protovalidate contains the file as a descriptor of another library. The files that it imports are registered when their
modules are loaded.
"""

from __future__ import annotations

import protovalidate
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, field_mask_pb2, timestamp_pb2  # noqa: F401

descriptor_pool.Default().AddSerializedFile(protovalidate.ViolationPb.desc().file.proto.to_binary())
