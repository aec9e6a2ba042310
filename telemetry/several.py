"""Combines several observers into one."""

from __future__ import annotations

from albert_tools.engine.model.telemetry import Ended, Observer, Span, Started


def several(*observers: Observer) -> Observer:
    """An observer that forwards every call to all `observers`, in order. If one raises, the others and the call are not
    affected."""
    return _Several(observers)


class _Several:
    def __init__(self, observers: tuple[Observer, ...]) -> None:
        self._observers = observers

    def started(self, span: Span, call: Started) -> None:
        for observer in self._observers:
            try:
                observer.started(span, call)
            except Exception:
                continue

    def ended(self, span: Span, call: Ended) -> None:
        for observer in self._observers:
            try:
                observer.ended(span, call)
            except Exception:
                continue
