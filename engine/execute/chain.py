"""What calls are judged by and happen in, and what a call inherits from the one that makes it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from albert_tools.engine.execute.record import CallId, Recorder, new_id
from albert_tools.engine.govern.authority import Asker, Authority
from albert_tools.engine.govern.modes import Modes
from albert_tools.engine.govern.policy.decision import Decision
from albert_tools.engine.govern.policy.rules import Policy
from albert_tools.engine.govern.settings import Governance
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.protocols import Ledger
from albert_tools.engine.model.result import Effect, ToolInvocation
from albert_tools.engine.sandbox.pool import RunReport

Log = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What calls are judged by and happen in. `workspace` and `governance` may be the failure that says why they are missing."""

    workspace: Any
    governance: Governance | Failure
    #: Answers for tools by name, instead of the tools: in the examples of a source.
    stubs: Mapping[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    #: Whether only what stays inside the workspace may be done for real.
    scratch: bool = False
    modes: Modes = field(default_factory=lambda: Modes(None))
    #: Who is asked where the rules say so; None: nobody, and that means no.
    ask: Asker | None = None
    ledger: Ledger | None = None
    authority: Authority | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.governance, Governance) and not isinstance(self.workspace, Failure) and not self.scratch:
            policy = Policy(self.governance.layers(), str(self.workspace.root), os.path.expanduser("~"))
            object.__setattr__(self, "authority", Authority(policy, self.modes))


@dataclass(slots=True)
class Chain:
    """What a call inherits from the one it is made by."""

    invocation: ToolInvocation
    deadline: float
    depth: int = 0
    log: Log | None = None
    printed: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    report: RunReport = field(default_factory=RunReport)
    watch: Callable[[str], None] | None = None
    spent: Spent = field(default_factory=lambda: Spent())
    callers: tuple[str, ...] = ()
    decision: Decision | None = None
    recorder: Recorder = field(kw_only=True)
    call: CallId = field(default_factory=lambda: CallId(new_id()))


@dataclass(slots=True)
class Spent:
    """What a run has used up, nested runs included: each of them alone could keep within its limits for ever."""

    calls: int = 0
    printed: int = 0
    #: Seconds that people took to answer; they don't count.
    waited: float = 0.0
    #: The runs that stand still meanwhile, and how many questions are open.
    runs: list[RunReport] = field(default_factory=list)
    open: int = 0
    since: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class Context:
    """The `CallContext` of a primitive."""

    workspace: Any
    remaining: float
    settings: Mapping[str, Any]
    tool: str
    effects: list[Effect]
    own: list[Effect]

    def effect(self, kind: str, **facts: Any) -> None:
        effect = Effect(kind, self.tool, facts)
        self.effects.append(effect)
        self.own.append(effect)
