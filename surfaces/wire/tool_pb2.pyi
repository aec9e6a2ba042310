from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Chunk(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ContentHash(_message.Message):
    __slots__ = ("hash",)
    HASH_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    def __init__(self, hash: _Optional[bytes] = ...) -> None: ...

class ToolRequest(_message.Message):
    __slots__ = ("request_id", "session_token", "dedupe_key", "strict", "file_read", "file_write", "file_edit", "shell_exec", "git_operation", "inference_call", "artifact_publish", "tool_call")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DEDUPE_KEY_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    FILE_READ_FIELD_NUMBER: _ClassVar[int]
    FILE_WRITE_FIELD_NUMBER: _ClassVar[int]
    FILE_EDIT_FIELD_NUMBER: _ClassVar[int]
    SHELL_EXEC_FIELD_NUMBER: _ClassVar[int]
    GIT_OPERATION_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_CALL_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_PUBLISH_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_token: str
    dedupe_key: str
    strict: bool
    file_read: FileRead
    file_write: FileWrite
    file_edit: FileEdit
    shell_exec: ShellExec
    git_operation: GitOperation
    inference_call: InferenceCall
    artifact_publish: ArtifactPublish
    tool_call: ToolCall
    def __init__(self, request_id: _Optional[str] = ..., session_token: _Optional[str] = ..., dedupe_key: _Optional[str] = ..., strict: _Optional[bool] = ..., file_read: _Optional[_Union[FileRead, _Mapping]] = ..., file_write: _Optional[_Union[FileWrite, _Mapping]] = ..., file_edit: _Optional[_Union[FileEdit, _Mapping]] = ..., shell_exec: _Optional[_Union[ShellExec, _Mapping]] = ..., git_operation: _Optional[_Union[GitOperation, _Mapping]] = ..., inference_call: _Optional[_Union[InferenceCall, _Mapping]] = ..., artifact_publish: _Optional[_Union[ArtifactPublish, _Mapping]] = ..., tool_call: _Optional[_Union[ToolCall, _Mapping]] = ...) -> None: ...

class LargeRequest(_message.Message):
    __slots__ = ("request_id", "session_token", "dedupe_key", "strict", "file_write")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DEDUPE_KEY_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    FILE_WRITE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_token: str
    dedupe_key: str
    strict: bool
    file_write: FileWrite
    def __init__(self, request_id: _Optional[str] = ..., session_token: _Optional[str] = ..., dedupe_key: _Optional[str] = ..., strict: _Optional[bool] = ..., file_write: _Optional[_Union[FileWrite, _Mapping]] = ...) -> None: ...

class FileRead(_message.Message):
    __slots__ = ("path", "offset", "limit")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    path: str
    offset: int
    limit: int
    def __init__(self, path: _Optional[str] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class FileWrite(_message.Message):
    __slots__ = ("path", "content", "create_only", "append")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CREATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: bytes
    create_only: bool
    append: bool
    def __init__(self, path: _Optional[str] = ..., content: _Optional[bytes] = ..., create_only: _Optional[bool] = ..., append: _Optional[bool] = ...) -> None: ...

class FileEdit(_message.Message):
    __slots__ = ("path", "old_content", "new_content")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OLD_CONTENT_FIELD_NUMBER: _ClassVar[int]
    NEW_CONTENT_FIELD_NUMBER: _ClassVar[int]
    path: str
    old_content: str
    new_content: str
    def __init__(self, path: _Optional[str] = ..., old_content: _Optional[str] = ..., new_content: _Optional[str] = ...) -> None: ...

class ShellExec(_message.Message):
    __slots__ = ("command", "cwd", "timeout_ms", "network_access", "env")
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_ACCESS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    command: str
    cwd: str
    timeout_ms: int
    network_access: bool
    env: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, command: _Optional[str] = ..., cwd: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., network_access: _Optional[bool] = ..., env: _Optional[_Iterable[str]] = ...) -> None: ...

class GitOperation(_message.Message):
    __slots__ = ("operation", "args", "cwd")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    operation: str
    args: _containers.RepeatedScalarFieldContainer[str]
    cwd: str
    def __init__(self, operation: _Optional[str] = ..., args: _Optional[_Iterable[str]] = ..., cwd: _Optional[str] = ...) -> None: ...

class InferenceCall(_message.Message):
    __slots__ = ("provider", "model", "prompt_hash", "max_tokens", "temperature_scaled", "system_prompt_hash")
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PROMPT_HASH_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_SCALED_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_HASH_FIELD_NUMBER: _ClassVar[int]
    provider: str
    model: str
    prompt_hash: bytes
    max_tokens: int
    temperature_scaled: int
    system_prompt_hash: bytes
    def __init__(self, provider: _Optional[str] = ..., model: _Optional[str] = ..., prompt_hash: _Optional[bytes] = ..., max_tokens: _Optional[int] = ..., temperature_scaled: _Optional[int] = ..., system_prompt_hash: _Optional[bytes] = ...) -> None: ...

class ArtifactPublish(_message.Message):
    __slots__ = ("artifact_id", "content_hash", "category", "metadata")
    ARTIFACT_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    artifact_id: str
    content_hash: bytes
    category: str
    metadata: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, artifact_id: _Optional[str] = ..., content_hash: _Optional[bytes] = ..., category: _Optional[str] = ..., metadata: _Optional[_Iterable[str]] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("name", "arguments_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    arguments_json: str
    def __init__(self, name: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class ToolResponse(_message.Message):
    __slots__ = ("request_id", "success", "denied", "error", "strict_result", "strict_hash")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STRICT_RESULT_FIELD_NUMBER: _ClassVar[int]
    STRICT_HASH_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    success: ToolSuccess
    denied: ToolDenied
    error: ToolError
    strict_result: bytes
    strict_hash: bytes
    def __init__(self, request_id: _Optional[str] = ..., success: _Optional[_Union[ToolSuccess, _Mapping]] = ..., denied: _Optional[_Union[ToolDenied, _Mapping]] = ..., error: _Optional[_Union[ToolError, _Mapping]] = ..., strict_result: _Optional[bytes] = ..., strict_hash: _Optional[bytes] = ...) -> None: ...

class ToolSuccess(_message.Message):
    __slots__ = ("result_hash", "inline_result", "budget_consumed", "duration_ms", "content_type", "budget")
    class BudgetEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    RESULT_HASH_FIELD_NUMBER: _ClassVar[int]
    INLINE_RESULT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_CONSUMED_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    result_hash: bytes
    inline_result: bytes
    budget_consumed: int
    duration_ms: int
    content_type: str
    budget: _containers.ScalarMap[str, int]
    def __init__(self, result_hash: _Optional[bytes] = ..., inline_result: _Optional[bytes] = ..., budget_consumed: _Optional[int] = ..., duration_ms: _Optional[int] = ..., content_type: _Optional[str] = ..., budget: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ToolDenied(_message.Message):
    __slots__ = ("rule_id", "rationale_code", "message", "violations")
    RULE_ID_FIELD_NUMBER: _ClassVar[int]
    RATIONALE_CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    rule_id: str
    rationale_code: str
    message: str
    violations: _containers.RepeatedCompositeFieldContainer[ValidationError]
    def __init__(self, rule_id: _Optional[str] = ..., rationale_code: _Optional[str] = ..., message: _Optional[str] = ..., violations: _Optional[_Iterable[_Union[ValidationError, _Mapping]]] = ...) -> None: ...

class ToolError(_message.Message):
    __slots__ = ("error_code", "message", "retryable", "retry_after_ms")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    error_code: str
    message: str
    retryable: bool
    retry_after_ms: int
    def __init__(self, error_code: _Optional[str] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

class ValidationError(_message.Message):
    __slots__ = ("field", "rule", "message")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    field: str
    rule: str
    message: str
    def __init__(self, field: _Optional[str] = ..., rule: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
