"""The service's end: a pool of single-use workers, and the run of one program in one of them.

`Sandbox.run` hands a program to a worker that stands ready, answers its calls, holds it to its limits and kills it. A limit is
kept by the parent's clock and the kernel, never by the program's good will: time by killing, memory and processor by the limits of
the process, sizes by counting on this side too. A worker is used once. What comes from it is hostile: anything but the few
messages of a healthy worker, within their bounds, ends it as a violation.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import socket
import subprocess
import threading
import time
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from albert_tools.engine.model import vocabulary
from albert_tools.engine.model.definition import Program
from albert_tools.engine.model.error_codes import CODES, DENIALS, ENDING
from albert_tools.engine.model.failure import Failure
from albert_tools.engine.model.limits import MAX_FIBRES, RunLimits
from albert_tools.engine.sandbox.worker.boundary_values import Unexportable, export
from albert_tools.engine.sandbox.worker.codec import BadFrame, Unpacker, pack
from albert_tools.engine.sandbox.worker.spawn import Spawned, spawn_zygote
from albert_tools.engine.sandbox.worker.zygote_report import BORN, ENDED, FAILED, READY, REPORT

#: Answers a call: name, arguments, key. Raises `Failure` when the call fails.
Call = Callable[[str, dict[str, Any], str], Awaitable[Any]]

#: What an answer or an argument may weigh.
MAX_ANSWER = 64 * 1024 * 1024
#: From `start` to the zygote's word that it is ready, and from a request to a worker.
START_SECONDS = 30.0
#: Workers that stand ready.
IDLE = 2
#: Frames that wait for the run to take them; past this the worker isn't read from.
MAX_WAITING = 256


class _Here(threading.local):
    """What sockets are read into, one read at a time: one for each thread, since each may have a loop with a sandbox."""

    def __init__(self) -> None:
        self.buffer = bytearray(262_144)


_HERE = _Here()

#: The name that a program's code has in tracebacks.
FILENAME = "<tool>"


@dataclass(slots=True)
class RunReport:
    """What a run took, for its caller's records: seconds of own time and calls made; and its clock, while it runs."""

    own_seconds: float = 0.0
    calls: int = 0
    clock: asyncio.Timeout | None = None
    _left: float = 0.0

    def pause(self) -> None:
        """Stop the run's clock: it waits for a person."""
        if self.clock is not None and (when := self.clock.when()) is not None:
            self._left = when - asyncio.get_running_loop().time()
            self.clock.reschedule(None)

    def go_on(self) -> None:
        """Let the clock run again, with as much left as there was."""
        if self.clock is not None and self.clock.when() is None:
            self.clock.reschedule(asyncio.get_running_loop().time() + self._left)


class Sandbox:
    """Runs programs in confined workers. One per event loop; `start` before the first `run`, `close` at the end."""

    def __init__(
        self,
        limits: RunLimits | None = None,
        *,
        idle: int = IDLE,
        modules: Sequence[str] | None = None,
        kind: str | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            limits: Of every run that doesn't bring its own.
            idle: Workers that stand ready.
            modules: The façades to load; all when not given.
            kind: A weaker fence than the machine offers, for tests.
        """
        self.limits = limits or RunLimits()
        self._idle_target = idle
        self._modules = modules
        self._kind = kind
        self._zygote: _Zygote | None = None
        self._starting: asyncio.Lock = asyncio.Lock()

    async def start(self, spawned: Spawned | None = None) -> None:
        """Start the zygote, or take over one `spawned` before.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        async with self._starting:
            if self._zygote is not None and not self._zygote.dead:
                return
            if self._zygote is not None:
                await self._zygote.close()
            process, control = spawned or spawn_zygote()
            known = sorted(vocabulary.MODULES)
            modules = known if self._modules is None else [m for m in self._modules if m in known]
            settings = [str(self.limits.cpu_seconds), str(self.limits.memory_bytes), self._kind or "", *modules]
            self._zygote = _Zygote(process, control, self._idle_target)
            await self._zygote.ready(",".join(settings))

    def expect(self, modules: Sequence[str]) -> None:
        """Load these façades only; has no effect once started."""
        self._modules = modules

    @property
    def confinement(self) -> str:
        """The fence in force: ``seccomp``, ``landlock`` or ``rlimits``; empty before `start`."""
        return self._zygote.kind if self._zygote else ""

    async def close(self) -> None:
        """End every worker and the zygote."""
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            await zygote.close()

    async def run(
        self,
        program: Program,
        arguments: dict[str, Any],
        *,
        call: Call,
        log: Callable[[str], None] | None = None,
        limits: RunLimits | None = None,
        report: RunReport | None = None,
    ) -> Any:
        """Run a program once; gives its result.

        Args:
            program: What the compiler made.
            arguments: By name, in the domain.
            call: Answers the program's tool calls; its `Failure` becomes the program's `ToolError`.
            log: Takes what the program prints.
            limits: Of this run; the sandbox's own when not given. Memory and processor time can only be lower.
            report: Filled in when the run ends, however it ends.

        Raises:
            Failure: the program failed or met a limit; `line` is the line of its own text.
        """
        limits = limits or self.limits
        if self._zygote is None or self._zygote.dead:
            await self.start()
        zygote = self._zygote
        assert zygote is not None
        settings = {
            "entry": program.entry,
            "code": _code(program.lowered),
            "most": limits.recursion,
            "log_bytes": limits.log_bytes,
            "result_bytes": limits.result_bytes,
        }
        try:
            frame = pack(["run", settings], arguments, MAX_ANSWER)
        except Unexportable as error:
            raise Failure("not_json", error.sentence("an argument")) from None
        worker = await zygote.take()
        report = report or RunReport()
        run = _Run(worker, program, call, log, limits, report)
        try:
            _lower(worker, limits, self.limits)
            return await run.go(frame)
        finally:
            report.own_seconds = run.own_spent
            report.calls = run.calls
            # The answer goes on its way first.
            zygote.done_with(worker)


@lru_cache(maxsize=256)
def _code(lowered: str) -> bytes:
    """A lowered text compiled and marshalled, for workers of this very interpreter; kept in memory only.

    Raises:
        Failure: `damaged`: it isn't Python, so it isn't what was lowered.
    """
    try:
        with warnings.catch_warnings():
            # Whoever runs a tool can do nothing about `1 is 1` in it.
            warnings.simplefilter("ignore")
            return marshal.dumps(compile(lowered, FILENAME, "exec", dont_inherit=True, optimize=0))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Failure(
            "damaged", f"the saved program can't be compiled: {error}", hint="define the tool again"
        ) from error


def _lower(worker: _Worker, limits: RunLimits, default: RunLimits) -> None:
    """Hold one worker to less memory or processor time than all were born with.

    Raises:
        Failure: `worker_died`.
    """
    if limits.memory_bytes >= default.memory_bytes and limits.cpu_seconds >= default.cpu_seconds:
        return
    import resource

    if not hasattr(resource, "prlimit"):
        return
    less = max(0, default.memory_bytes - limits.memory_bytes)
    cpu = min(limits.cpu_seconds, default.cpu_seconds)
    try:
        soft, _ = resource.prlimit(worker.pid, resource.RLIMIT_AS)
        resource.prlimit(worker.pid, resource.RLIMIT_AS, (soft - less, soft - less))
        resource.prlimit(worker.pid, resource.RLIMIT_CPU, (cpu, cpu + 1))
    except ProcessLookupError:
        raise Failure("worker_died", "the worker ended before it began", retryable=True) from None


class _Zygote:
    """The zygote's process, its control socket, and the workers that stand ready."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, idle: int) -> None:
        self.kind = ""
        self.dead = False
        self._process = process
        self._control = control
        self._idle_target = max(1, idle)
        self._idle: deque[_Worker] = deque()
        self._coming = 0
        self._takers: deque[asyncio.Future[_Worker]] = deque()
        self._alive: dict[int, _Worker] = {}
        self._buffer = bytearray()
        self._handles: deque[int] = deque()
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[str] = self._loop.create_future()
        self._loop.add_reader(control.fileno(), self._readable)

    async def ready(self, settings: str) -> None:
        """Send the settings, wait for the zygote's word, then ask for the first workers."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._loop.sock_sendall(self._control, settings.encode() + b"\n")
                self.kind = await self._ready
        except TimeoutError:
            await self.close()
            raise Failure("sandbox_unavailable", "the sandbox does not answer") from None
        except OSError as error:
            await self.close()
            raise Failure("sandbox_unavailable", f"the sandbox ended at once: {error.strerror}") from None
        except (Failure, asyncio.CancelledError):
            await self.close()
            raise
        self._refill()

    async def take(self) -> _Worker:
        """A worker that stands ready, as soon as there is one.

        Raises:
            Failure: `sandbox_unavailable`.
        """
        while self._idle:
            worker = self._idle.popleft()
            if not worker.ended:
                if not self._idle:
                    self._refill()
                return worker
        if self.dead:
            raise Failure("sandbox_unavailable", "the sandbox has ended", retryable=True)
        taker: asyncio.Future[_Worker] = self._loop.create_future()
        self._takers.append(taker)
        self._refill()
        taken = False
        try:
            async with asyncio.timeout(START_SECONDS):
                worker = await taker
            taken = True
            return worker
        except TimeoutError:
            raise Failure("sandbox_unavailable", "no worker came up", retryable=True) from None
        finally:
            # Called off while it waited, or just when the worker came, which nobody would end then.
            if not taker.done() or taker.cancelled():
                self._takers = deque(t for t in self._takers if t is not taker)
            elif taker.exception() is None and not taken:
                self.done_with(taker.result())

    def done_with(self, worker: _Worker) -> None:
        """Soon, when what waits for the answer has had its turn: end the worker, and make the next one."""
        self._loop.call_soon(self._after, worker)

    def _after(self, worker: _Worker) -> None:
        worker.kill()
        self._refill()

    def _refill(self) -> None:
        wanted = self._idle_target + len(self._takers) - len(self._idle) - self._coming
        if wanted > 0 and not self.dead:
            wanted = min(wanted, 32)
            try:
                self._control.send(b"f" * wanted)
                self._coming += wanted
            except BlockingIOError:
                self._loop.call_later(0.01, self._refill)
            except OSError:
                self._lost()

    def _readable(self) -> None:
        try:
            data, handles, _, _ = socket.recv_fds(self._control, 4096, 64)
        except BlockingIOError:
            return
        except OSError:
            data, handles = b"", []
        self._handles.extend(handles)
        if not data:
            self._lost()
            return
        self._buffer += data
        while len(self._buffer) >= REPORT.size:
            what, pid, number, length = REPORT.unpack_from(self._buffer)
            if len(self._buffer) < REPORT.size + length:
                return
            text = bytes(self._buffer[REPORT.size : REPORT.size + length]).decode("utf-8", "replace")
            del self._buffer[: REPORT.size + length]
            if what == BORN:
                self._born(pid, number)
            elif what == ENDED:
                self._ended(pid, number)
            elif what == READY and not self._ready.done():
                self._ready.set_result(text)
            elif what == FAILED and not self._ready.done():
                self._ready.set_exception(Failure("sandbox_unavailable", f"the sandbox can't be set up: {text}"))

    def _born(self, pid: int, handles: int) -> None:
        self._coming -= 1
        sock = socket.socket(fileno=self._handles.popleft())
        pidfd = self._handles.popleft() if handles > 1 else None
        worker = _Worker(pid, sock, pidfd, self._loop)
        self._alive[pid] = worker
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(worker)
                return
        if len(self._idle) < self._idle_target:
            self._idle.append(worker)
        else:
            # It was asked for by somebody who has been called off since.
            worker.kill()

    def _ended(self, pid: int, status: int) -> None:
        worker = self._alive.pop(pid, None)
        if worker is not None:
            worker.reaped(status)
            if worker in self._idle:
                # It died before it was used: the fence or the rehearsal failed.
                self._idle.remove(worker)
                worker.kill()

    def _lost(self) -> None:
        if self.dead:
            return
        self.dead = True
        self._loop.remove_reader(self._control.fileno())
        failure = Failure("sandbox_unavailable", "the sandbox has ended", retryable=True)
        if not self._ready.done():
            self._ready.set_exception(failure)
        for taker in self._takers:
            if not taker.done():
                taker.set_exception(failure)
        for worker in list(self._alive.values()):
            worker.kill()

    async def close(self) -> None:
        """End it all and wait for the process."""
        self._lost()
        if self._ready.done() and not self._ready.cancelled():
            # An error that nobody waits for any more is no surprise.
            self._ready.exception()
        self._control.close()
        for handle in self._handles:
            os.close(handle)
        self._handles.clear()
        deadline = time.monotonic() + 2.0
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                self._process.kill()
            await asyncio.sleep(0.001)


class _Worker:
    """One worker's socket and process. Messages queue up in `inbox`; `arrived` is set when there is something new."""

    def __init__(self, pid: int, sock: socket.socket, pidfd: int | None, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = pid
        self.ended = False
        self.status: int | None = None
        self.violation: str | None = None
        self.inbox: deque[list[Any]] = deque()
        self._socket = sock
        self._pidfd = pidfd
        self._loop = loop
        self._unpacker = Unpacker(MAX_ANSWER)
        self._outgoing: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._reading = False
        self._killed = False
        sock.setblocking(False)
        self._read_on()

    async def receive(self) -> list[Any] | None:
        """The next message; None when the worker has ended and nothing is left."""
        while not self.inbox:
            if self.ended or self.violation:
                return None
            self._read_on()
            await self._wait()
        return self.inbox.popleft()

    async def reaping(self, seconds: float = 2.0) -> int | None:
        """The raw exit status, once the zygote has told it."""
        deadline = self._loop.time() + seconds
        while self.status is None and self._loop.time() < deadline:
            await asyncio.sleep(0.001)
        return self.status

    def send(self, frame: bytes) -> Awaitable[None] | None:
        """Send a frame, whole and after those before it; something to await when it doesn't go at once."""
        sent = 0
        if not self._outgoing:
            try:
                sent = self._socket.send(frame)
            except BlockingIOError:
                pass
            except OSError:
                return None
            if sent == len(frame):
                return None
            self._loop.add_writer(self._socket.fileno(), self._writable)
        gone = self._loop.create_future()
        self._outgoing.append((memoryview(frame)[sent:], gone))
        return gone

    def _writable(self) -> None:
        while self._outgoing:
            rest, gone = self._outgoing[0]
            try:
                sent = self._socket.send(rest)
            except BlockingIOError:
                return
            except OSError:
                break
            if sent < len(rest):
                self._outgoing[0] = rest[sent:], gone
                return
            self._outgoing.popleft()
            # Whoever waited may have been called off; the frame goes on all the same, or the next would begin within it.
            if not gone.done():
                gone.set_result(None)
        self._stop_writing()

    def _stop_writing(self) -> None:
        """Nothing more goes out; nobody waits for it in vain."""
        self._loop.remove_writer(self._socket.fileno())
        while self._outgoing:
            _, gone = self._outgoing.popleft()
            if not gone.done():
                gone.set_result(None)

    def kill(self) -> None:
        """End the process, whatever it does, and let go of it."""
        if self._killed:
            return
        self._killed = True
        if self.status is None:
            try:
                if self._pidfd is not None:
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                else:
                    os.kill(self.pid, signal.SIGKILL)
            except OSError:
                pass
        self._stop_reading()
        self._stop_writing()
        self.ended = True
        self._wake()
        self._socket.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def reaped(self, status: int) -> None:
        """The zygote's word that the process has ended."""
        self.status = status

    def _readable(self) -> None:
        try:
            buffer = _HERE.buffer
            size = self._socket.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        data = bytes(memoryview(buffer)[:size])
        if not data:
            self.ended = True
            self._stop_reading()
        else:
            try:
                self.inbox.extend(self._unpacker.feed(data))
            except BadFrame as error:
                self.violation = str(error)
                self._stop_reading()
            if len(self.inbox) > MAX_WAITING:
                self._stop_reading()
        self._wake()

    def _read_on(self) -> None:
        if not self._reading and not self.ended:
            self._reading = True
            self._loop.add_reader(self._socket.fileno(), self._readable)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._socket.fileno())

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


@dataclass(slots=True)
class _Run:
    """One program in one worker."""

    worker: _Worker
    program: Program
    call: Call
    log: Callable[[str], None] | None
    limits: RunLimits
    report: RunReport = field(default_factory=RunReport)
    calls: int = 0
    own_spent: float = 0.0
    _since: float = 0.0
    _out: int = 0
    _log_left: int = 0
    _stopped: str | None = None
    _ended: Failure | None = None
    _last_failure: Failure | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _timers: list[asyncio.TimerHandle] = field(default_factory=list)

    async def go(self, frame: bytes) -> Any:
        """Until the result, or the failure."""
        loop = asyncio.get_running_loop()
        self._log_left = self.limits.log_bytes
        self._since = loop.time()
        self._own_timer(loop)
        whole = asyncio.timeout(self.limits.run_seconds)
        try:
            async with whole:
                self.report.clock = whole
                rest = self.worker.send(frame)
                if rest is not None:
                    await rest
                return await self._serve()
        except TimeoutError:
            if not whole.expired():
                raise
            raise self._limit("run_limit") from None
        finally:
            self.report.clock = None
            if not self._out:
                self.own_spent += loop.time() - self._since
            for timer in self._timers:
                timer.cancel()
            for task in self._tasks:
                task.cancel()

    async def _serve(self) -> Any:
        worker = self.worker
        while True:
            message = await worker.receive()
            if message is None:
                raise await self._death()
            try:
                match message:
                    case ["call", int() as number, str() as name, str() as key, bool() as together, dict() as given]:
                        arguments = export(given, MAX_ANSWER)
                        self._count_call()
                        if together:
                            if len(self._tasks) >= MAX_FIBRES:
                                raise BadFrame("more calls at once than there are fibres")
                            task = asyncio.create_task(self._answer(number, name, arguments, key))
                            self._tasks.add(task)
                            task.add_done_callback(self._tasks.discard)
                        else:
                            await self._answer(number, name, arguments, key)
                    case ["print", str() as text]:
                        self._log_left -= len(text.encode())
                        if self._log_left < 0:
                            raise self._limit("log_limit")
                        if self.log is not None:
                            self.log(text)
                    case ["result", value]:
                        return export(value, self.limits.result_bytes)
                    case ["error", dict() as error]:
                        raise self._error(error)
                    case ["limit", str() as code, list() as lines]:
                        raise self._limit(code, lines)
                    case _:
                        raise BadFrame("a message that workers don't send")
            except (BadFrame, Unexportable) as error:
                self.worker.kill()
                raise Failure(
                    "sandbox_violation",
                    f"the worker broke the protocol ({error}), so it was ended",
                    tool=self.program.name,
                ) from None

    def _count_call(self) -> None:
        self.calls += 1
        if self.calls > self.limits.calls:
            raise self._limit("call_limit")

    async def _answer(self, number: int, name: str, arguments: dict[str, Any], key: str) -> None:
        self._pause()
        try:
            value = await self.call(name, arguments, key)
            frame = pack(["value", number], value, MAX_ANSWER)
        except Unexportable as error:
            frame = self._failure(number, Failure("invalid_result", error.sentence(f"the output of {name}"), tool=name))
        except Failure as failure:
            if failure.code in ENDING:
                self._end(failure)
                return
            frame = self._failure(number, failure, name)
        finally:
            self._resume()
        rest = self.worker.send(frame)
        if rest is not None:
            await rest

    def _failure(self, number: int, failure: Failure, name: str = "") -> bytes:
        self._last_failure = failure
        facts = {
            "code": failure.code,
            "message": failure.message,
            # The tool that the program called, whatever failed within it.
            "tool": name or failure.tool,
            "retryable": failure.retryable,
        }
        return pack(["failure", number, facts])

    def _end(self, failure: Failure) -> None:
        """The run ends where it stands: its program is never told, so it can't catch it."""
        self._ended = self._ended or failure
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self.worker.kill()

    # The clocks. A program's own time runs while no call is out.

    def _pause(self) -> None:
        if not self._out:
            self.own_spent += asyncio.get_running_loop().time() - self._since
        self._out += 1

    def _resume(self) -> None:
        self._out -= 1
        if not self._out:
            self._since = asyncio.get_running_loop().time()

    def _own_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """Looks again whenever the time would be up if no call had been out: one timer, however many calls."""
        spent = self.own_spent + (0.0 if self._out else loop.time() - self._since)
        left = self.limits.own_seconds - spent
        if left <= 0:
            self._stop("time_limit")
            return
        self._timers[:] = [loop.call_later(max(left, 0.001), self._own_timer, loop)]

    def _stop(self, code: str) -> None:
        self._stopped = self._stopped or code
        for task in self._tasks:
            task.cancel()
        self.worker.kill()

    # How it ended.

    def _limit(self, code: str, lines: list[Any] | None = None) -> Failure:
        self.worker.kill()
        if code not in _LIMITS:
            return Failure("sandbox_violation", "the worker named a limit that there isn't", tool=self.program.name)
        sentence, hint = _LIMITS[code]
        trace = self._source_lines(lines or [])
        failure = Failure(
            code,
            sentence.format(limits=self.limits),
            hint=hint,
            tool=self.program.name,
            line=trace[-1] if trace else None,
        )
        return failure

    def _error(self, error: dict[str, Any]) -> Failure:
        def text(name: str) -> str:
            value = error.get(name)
            return value[:4000] if isinstance(value, str) else ""

        lines = error.get("lines")
        trace = self._source_lines(lines if isinstance(lines, list) else [])
        code, kind, message = text("code"), text("type"), text("message")
        line = trace[-1] if trace else None
        details: dict[str, Any] = {"lines": trace, "trail": [{"tool": self.program.name, "line": line}]}
        known = self._last_failure
        if known is not None and (known.code, known.message) != (code, message):
            known = None
        if known is None and (code not in CODES or code in _NEVER_FROM_A_PROGRAM):
            if code != "tool_error":
                details["code"] = code
            code = "tool_error"
        if kind:
            details["type"] = kind
        if known is not None and known.line is not None:
            # It came out of another saved tool: told from there, with the way it went.
            details["trail"] += known.details.get("trail", [])
            line = known.line
        if code == "exception" and kind != "ToolError":
            message = f"{kind}: {message}" if message else kind
        return Failure(
            code,
            message,
            # A failure that the program let through is told as it came.
            hint=known.hint if known is not None else None,
            rule=known.rule if known is not None else None,
            retryable=error.get("retryable") is True,
            tool=text("tool") or self.program.name,
            line=line,
            details=details,
        )

    async def _death(self) -> Failure:
        if self._ended:
            return self._ended
        if self._stopped:
            return self._limit(self._stopped)
        if self.worker.violation:
            self.worker.kill()
            return Failure("sandbox_violation", f"the worker broke the protocol: {self.worker.violation}")
        status = await self.worker.reaping()
        if self._stopped:
            return self._limit(self._stopped)
        if status is not None and os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == getattr(signal, "SIGXCPU", None):
                return self._limit("cpu_limit")
            if number == getattr(signal, "SIGSYS", None):
                return Failure(
                    "sandbox_violation",
                    "the program tried what a worker may not, so it was ended",
                    tool=self.program.name,
                )
            # Out of memory or stack within C code ends in one of these; so does the kernel's own killer.
            if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGKILL):
                return self._limit("memory_limit")
        return Failure("worker_died", "the worker ended without an answer", tool=self.program.name, retryable=True)

    def _source_lines(self, lines: list[Any]) -> list[int]:
        table = self.program.lines
        return [table[n - 1] for n in lines[:20] if isinstance(n, int) and 0 < n <= len(table)]


_LIMITS: dict[str, tuple[str, str | None]] = {
    "time_limit": (
        "stopped after {limits.own_seconds:g} s of its own time",
        "do less, or in smaller steps; time spent in tool calls does not count",
    ),
    "run_limit": (
        "stopped after {limits.run_seconds:.3g} s in all, calls included",
        "split the work over several runs",
    ),
    "cpu_limit": ("stopped after {limits.cpu_seconds} s of processor time", "do less, or in smaller steps"),
    "memory_limit": (
        "stopped because it needs more than {limits.memory_bytes:,} bytes of memory",
        "work on one file or one part at a time",
    ),
    "recursion_limit": (
        "stopped because its calls nest more than {limits.recursion:,} deep",
        "go over a list of what is left to do instead",
    ),
    "call_limit": ("stopped at {limits.calls:,} tool calls", "call less often, or split the work over several runs"),
    "log_limit": ("stopped because it printed more than {limits.log_bytes:,} bytes", "print less"),
}

#: Codes that would claim more than a program can know: only what failed beneath it, or ended it, may bear them.
_NEVER_FROM_A_PROGRAM = (
    DENIALS
    | ENDING
    | frozenset(_LIMITS)
    | {
        "sandbox_violation",
        "worker_died",
        "internal_error",
        "damaged",
        "outdated",
        "depth_limit",
    }
)
