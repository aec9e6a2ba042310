"""Every error code with its meaning, an example, and the action that the caller should take.

A code is stable: programs compare `error.code`, the command line derives its exit code from it, and failures are counted by its
category. `albert help CODE` prints an entry, and `docs/errors.md` lists all of them. This module only contains plain data, because
every run imports it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: The categories by which failures are counted.
FailureCategory = Literal["permission", "validation", "timeout", "exception", "exhaustion"]


class Code(NamedTuple):
    """The description of an error code."""

    #: The name of the error's type in the record and in programs of other languages.
    kind: str
    category: FailureCategory
    #: What is wrong, in one sentence.
    meaning: str
    #: A situation in which a caller gets the error.
    example: str
    #: The action that the caller should take.
    remedy: str
    #: Only for a denial, which is reported before anything is executed: the usual reason, in one word.
    denial: str | None = None
    #: Whether the error ends the whole run. The program does not get it as an exception.
    ends_run: bool = False


CODES: dict[str, Code] = {
    # Denials
    "permission_denied": Code(
        "PolicyDenied",
        "permission",
        "A rule denies the call, or no rule allows it.",
        "A path such as `../secret` leads out of the workspace; the owner has not allowed `read_system_logs`.",
        "Stay within the workspace, or use another tool. `albert policy explain TOOL key=value` names the rule; only the owner"
        " can change it.",
        denial="denied",
    ),
    "governance_unavailable": Code(
        "GovernanceUnavailable",
        "permission",
        "The rules can't be used, or there is no workspace, so every call is denied.",
        "`governance.yaml` is not valid YAML; the folder of `--workspace` does not exist.",
        "The owner corrects what the message names. `albert policy check` checks the rules, `albert doctor` everything else.",
        denial="unavailable",
    ),
    "sandbox_unavailable": Code(
        "GovernanceUnavailable",
        "permission",
        "The machine offers no way to confine a program, so no program runs.",
        "The kernel has neither seccomp nor Landlock, or the process that starts workers has ended.",
        "Try once more; then let `albert doctor` say what the machine lacks.",
        denial="unavailable",
    ),
    "rate_limited": Code(
        "RateLimited",
        "exhaustion",
        "A rule allows fewer calls in this time; `retry_after_ms` says when to call again.",
        "A tool with `rate_limit_per_hour: 100` is called for the 101st time in an hour.",
        "Wait for `retry_after_ms` milliseconds. If it is null, the rule allows no call at all.",
        denial="rate_limit",
    ),
    "budget_exceeded": Code(
        "BudgetExceeded",
        "exhaustion",
        "The session's budget has no room for the call, or its quota has none for what would be stored.",
        "A session opened with `--calls 2` makes its third call; more than `records: {session_mb: 256}` would be stored for it.",
        "Finish the work in a new session, with a larger budget: `albert session new` opens one. The rule says which limit it was.",
        denial="budget",
    ),
    # The call
    "unknown_tool": Code(
        "UnknownTool",
        "validation",
        "There is no tool of that name, or no such version of it.",
        "`read_flie` instead of `read_file`; a tool that was removed.",
        "`albert tools` lists the tools; `albert show NAME` lists the versions of one.",
        denial="unknown_tool",
    ),
    "invalid_arguments": Code(
        "ValidationFailed",
        "validation",
        "The arguments do not match the tool's parameters.",
        "`path` is missing; `top` is a text where an integer is expected.",
        "`albert show NAME` describes each parameter. `details.violations` lists every argument that is wrong.",
    ),
    "invalid_result": Code(
        "ValidationFailed",
        "validation",
        "The tool returned a value that does not match its declared result.",
        "A tool declared as `-> list[str]` returns a dict.",
        "Define the tool again: return the declared type, or change the annotation after `->`.",
    ),
    "not_json": Code(
        "ValidationFailed",
        "validation",
        "A value can not be passed to or from a tool, because JSON has no such value.",
        "A program returns a set, bytes, a date or `float('nan')`.",
        "Convert the value first: `sorted(s)`, `b.decode()`, `d.isoformat()`.",
    ),
    "dedupe_conflict": Code(
        "Conflict",
        "validation",
        "The dedupe key was used before, for another call.",
        "The key `order-7` was used for `amount=5`; now it comes with `amount=6`.",
        "Use a new key for a new call, or repeat the call with the same arguments.",
    ),
    # Files and the network
    "not_found": Code(
        "NotFound",
        "exception",
        "There is nothing at that path, or nothing with that id.",
        "`read_file(path='notes.txt')` where there is no such file.",
        "Check the spelling: `list_directory` lists a folder. Paths are relative to the workspace.",
    ),
    "exists": Code(
        "Conflict",
        "exception",
        "The path or the name is taken, or what the request is about is over already.",
        "`copy_file` onto an existing file without `overwrite=True`; `albert runs resume` of a run that was cancelled.",
        "Choose another name, or ask the tool to overwrite where it can. Begin a new run in place of one that is over.",
    ),
    "not_a_file": Code(
        "IOFailed",
        "exception",
        "The path names a folder, a device or a socket, not a regular file.",
        "`read_file(path='docs')` where `docs` is a folder.",
        "Name a file in it; `list_directory` lists them.",
    ),
    "not_a_directory": Code(
        "IOFailed",
        "exception",
        "The path, or a part of it, is not a folder.",
        "`list_directory(path='notes.txt')`; `read_file(path='notes.txt/x')`.",
        "Name the folder. `read_file` reads a file.",
    ),
    "encoding_error": Code(
        "EncodingError",
        "exception",
        "The bytes are not text in the expected encoding.",
        "`read_file` of an image, or of a text in `latin-1`.",
        "Name the encoding with `encoding=`. A binary file can't be read as text.",
    ),
    "too_large": Code(
        "ResourceExhausted",
        "exhaustion",
        "A file, a text or a command is larger than its limit.",
        "`read_file` of a file of 2 GiB.",
        "Read a part of it with `offset` and `limit`, or search it.",
    ),
    "io_error": Code(
        "IOFailed",
        "exception",
        "The operating system refused to read or write.",
        "The disk is full; the file's permissions do not allow reading it.",
        "Correct what the message names, then call again.",
    ),
    "network_error": Code(
        "IOFailed",
        "exception",
        "The other side could not be reached, or did not answer.",
        "The name of a host does not resolve; nothing listens at the port.",
        "Check the address. Call again later if `retryable` is true.",
    ),
    "service_error": Code(
        "ServiceFailed",
        "exception",
        "The other side answered with an error, or with something that can't be read.",
        "A model's provider does not accept the key.",
        "Do what the message says. Call again later if `retryable` is true.",
    ),
    # Limits
    "timeout": Code(
        "Timeout",
        "timeout",
        "One call took longer than it may.",
        "A command of `bash` that has not ended after its `timeout_seconds`; a function, if 64 earlier calls still run.",
        "Do less in one call, or raise its timeout as far as the rules allow.",
    ),
    "time_limit": Code(
        "Timeout",
        "timeout",
        "The program computed longer than it may; the time of its calls does not count.",
        "A loop over ten million rows.",
        "Do less, or split the work over several runs.",
    ),
    "run_limit": Code(
        "Timeout",
        "timeout",
        "The whole run took longer than it may, calls included.",
        "A program that makes 100 slow requests one after the other.",
        "Split the work over several runs, or make independent calls with `parallel`.",
    ),
    "cpu_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "The program used up its processor time.",
        "`3 ** 10**9`.",
        "Do less, or split the work over several runs.",
    ),
    "memory_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "The program needs more memory than it may have.",
        "Reading many large files into one list.",
        "Work on one file, or one part of a file, at a time.",
    ),
    "process_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "A command started more processes at once than it may.",
        "`make -j 1000`.",
        "Let it start fewer: `make -j 4`. What it had done stays done.",
    ),
    "recursion_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "The program's functions call each other too deep.",
        "A recursive walk over a tree that is 2,000 levels deep.",
        "Keep a list of the work that is left, and loop over it.",
    ),
    "loop_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "The loops of a run took as many rounds as they may. Those of `while` count, and those over what a list got meanwhile.",
        "`while True: count()`.",
        "Check that each loop ends. In a loop over a list, add only what is not in it yet.",
    ),
    "call_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "The run made as many tool calls as it may.",
        "One `read_file` for each of 5,000 files.",
        "Use a tool that handles many at once, such as `search_text`, or call a tool for many items with `start_batch`.",
    ),
    "result_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "An argument or a result is too large, or nests too deep.",
        "A program returns the text of all files of a folder.",
        "Return a summary, or write the data to a file.",
    ),
    "log_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "The run printed more than it may.",
        "`print` in a loop over a million rows.",
        "Print less; return what matters.",
    ),
    "depth_limit": Code(
        "ResourceExhausted",
        "exhaustion",
        "Saved tools call each other too deep.",
        "A saved tool calls a saved tool that calls a saved tool, and so on.",
        "Call the tools at the end of the chain directly.",
    ),
    # Programs
    "tool_error": Code(
        "ToolFailed",
        "exception",
        "The program raised `ToolError`: the message is its author's.",
        '`raise ToolError("no such customer")` in a saved tool.',
        "Do what the message says, or catch the error: `except ToolError as error`.",
    ),
    "exception": Code(
        "ToolFailed",
        "exception",
        "The program raised an exception that it does not catch.",
        "`KeyError: 'name'` in a saved tool; a fault in a primitive of an application.",
        "Correct the program in the line that the error names, and define it again.",
    ),
    "invalid_source": Code(
        "ValidationFailed",
        "validation",
        "The source was refused, so nothing was saved.",
        "A source that calls `open()`; a structured definition that is not JSON.",
        "Correct every diagnostic, each of which says what to write instead, and define it again.",
    ),
    "example_failed": Code(
        "ExampleFailed",
        "validation",
        "An example of the source gave another result than the one written there, so nothing was saved.",
        "`@example(arguments={'n': 2}, result=4)` where the program returns 5.",
        "Correct the program or the example. The error shows both results.",
    ),
    "outdated": Code(
        "Outdated",
        "validation",
        "A tool that this one calls is gone, or no longer takes the arguments that it is given.",
        "The application no longer has the primitive `read_order`.",
        "Define the tool again from its source, which `albert show NAME` prints.",
    ),
    "damaged": Code(
        "Damaged",
        "exception",
        "A stored file is not what was saved: its hash differs.",
        "Somebody edited a file in `~/.albert/tools` by hand.",
        "Define the tool again, or restore the file from a backup. `albert doctor` names every damaged file.",
    ),
    # Runs
    "suspended": Code(
        "Suspended",
        "permission",
        "The run waits for a person's answer; nothing is lost.",
        "The rules demand an approval for `write_file`, and nobody is at a terminal.",
        "A person answers with `albert approvals answer ID once`; then `albert runs resume RUN` continues.",
        ends_run=True,
    ),
    "cancelled": Code(
        "Cancelled",
        "exception",
        "The call or the run was cancelled.",
        "Ctrl-C; `albert runs cancel RUN`.",
        "`albert runs show RUN` lists what was done before.",
        ends_run=True,
    ),
    "diverged": Code(
        "Diverged",
        "exception",
        "The program makes another call than the one in the run's journal.",
        "A run is replayed with another version of its tool, or resumed in another folder.",
        "Resume the run where it began, with the version that it began with.",
        ends_run=True,
    ),
    "unknown_outcome": Code(
        "UnknownOutcome",
        "exception",
        "A call was interrupted, and whether it took effect is not known.",
        "The process died while a command was running.",
        "Look at what the call would have changed. `albert runs resume RUN` asks a person before it repeats the call.",
        ends_run=True,
    ),
    # Faults
    "sandbox_violation": Code(
        "SandboxViolation",
        "permission",
        "The worker tried something that no worker may do, and was ended.",
        "A program reached a system call that the sandbox blocks.",
        "Report it with the tool's source: a checked program can not do this.",
    ),
    "worker_died": Code(
        "Internal",
        "exception",
        "The worker ended without an answer.",
        "The system ran out of memory and killed it.",
        "Run it again; if it happens again, let `albert doctor` check the machine.",
    ),
    "internal_error": Code(
        "Internal",
        "exception",
        "A defect in Albert Tools or in a primitive.",
        "A primitive raises an exception that it does not declare.",
        "Report it to the author of the tool that the error names, else to Albert Tools; `ALBERT_DEBUG=1` shows where it happens.",
    ),
}

#: Errors that are reported before anything is executed.
DENIALS = frozenset(name for name, code in CODES.items() if code.denial)

#: Errors that end a run. The program does not get them as exceptions, and they are never the end of a step.
ENDING = frozenset(name for name, code in CODES.items() if code.ends_run)
