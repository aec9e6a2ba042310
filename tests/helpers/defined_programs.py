"""Generated programs through the front door: defined in a service with a new home, stored, loaded again, shown and reviewed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from albert_tools import SyncToolService
from albert_tools.engine.analysis.analyse import analyse
from albert_tools.engine.check.checker import check_or_raise
from albert_tools.engine.model.definition import canonical
from albert_tools.engine.model.manifest import ANALYSIS
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers.generated_tools import GeneratedTools


class DefinedPrograms:
    """A service whose saved tools are those of a catalogue."""

    def __init__(self, service: SyncToolService, home: Path, catalog: GeneratedTools) -> None:
        self._service = service
        self._home = home
        self._catalog = catalog
        for checked in catalog.saved.values():
            service.define(checked.source)

    def problem(self, source: str) -> str | None:
        """What is wrong with the version of a source after it was stored."""
        expected = replace(analyse(check_or_raise(source, self._catalog)), analysis=ANALYSIS)
        defined = self._service.define(source)
        loaded = TinyToolStore(self._home / "tools").load(defined.name).definition
        manifest = loaded.manifest
        # As JSON, 1, 1.0 and true are different.
        if manifest is None or canonical(manifest.as_dict()) != canonical(expected.as_dict()):
            return f"stored: {manifest}\nfound out: {expected}"
        if loaded != defined:
            return f"stored: {loaded}\ndefined: {defined}"
        review = self._service.review(defined.name, rerun=False)
        for shown in (self._service.describe(defined.name).as_dict(), review.as_dict()):
            json.dumps(shown, allow_nan=False, ensure_ascii=False).encode()
        return None


@contextmanager
def defined_programs(folder: Path, catalog: GeneratedTools) -> Iterator[DefinedPrograms]:
    """A service with a new home in `folder`."""
    home, work = folder / "home", folder / "work"
    (work / ".albert").mkdir(parents=True)
    with SyncToolService.open(home=home, workspace=work) as service:
        yield DefinedPrograms(service, home, catalog)
