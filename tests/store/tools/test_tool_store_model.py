"""Any sequence of operations gives the same results in the store as in a dictionary."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from albert_tools.engine.model.failure import Failure
from albert_tools.store.home_tables import HomeTables
from albert_tools.store.tools import tool_store
from albert_tools.store.tools.postgres_tools import PostgresToolStore
from albert_tools.store.tools.stored_tools import StoredTools
from albert_tools.store.tools.tool_store import TinyToolStore
from tests.helpers.effort import examples
from tests.store.conftest import empty

NAMES = st.sampled_from(["a", "A", "readFile", "readfile", "list_all"])
TEXTS = st.integers(0, 5).map(str)


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["files", "postgres"])
def test_the_store_is_a_dictionary_with_a_history(
    make, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(tool_store, "KEEP", 3)

    tables: HomeTables | None = request.getfixturevalue("created_tables") if kind == "postgres" else None

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.root = Path(tempfile.mkdtemp())
            if tables is not None:
                empty(tables)
            self.newest: dict = {}
            self.history: dict = {}
            self.reopen()

        @rule()
        def reopen(self) -> None:
            self.store: StoredTools
            if tables is None:
                self.store = TinyToolStore(self.root / "tools", self.root / "cache")
            else:
                self.store = PostgresToolStore(tables)

        @rule()
        def lose_the_cache(self) -> None:
            shutil.rmtree(self.root / "cache", ignore_errors=True)

        @rule(name=NAMES, text=TEXTS)
        def save(self, name: str, text: str) -> None:
            version = make(name, text)
            assert self.store.save(version) is (self.newest.get(name) != version)
            self.newest[name] = version
            self.history.setdefault(name, {})[version.version] = version

        @rule(name=NAMES)
        def delete(self, name: str) -> None:
            if self.newest.pop(name, None) is not None:
                self.store.delete(name)
                return
            with pytest.raises(Failure, match=name):
                self.store.delete(name)

        @rule(name=NAMES)
        def load(self, name: str) -> None:
            if name in self.newest:
                assert self.store.load(name) == self.newest[name]
                return
            with pytest.raises(Failure) as caught:
                self.store.load(name)
            assert caught.value.code == "unknown_tool"

        @rule(name=NAMES)
        def load_by_hash(self, name: str) -> None:
            for version, expected in self.history.get(name, {}).items():
                assert self.store.load(name, version) == expected

        @rule(name=NAMES)
        def search(self, name: str) -> None:
            assert (name in [s.name for s in self.store.search(name)]) is (name in self.newest)

        @invariant()
        def listed(self) -> None:
            assert [(s.name, s.version, s.versions, s.problem) for s in self.store.list()] == [
                (name, v.version, len(self.history[name]), None) for name, v in sorted(self.newest.items())
            ]

        def teardown(self) -> None:
            shutil.rmtree(self.root)

    run_state_machine_as_test(
        Machine,
        settings=settings(examples(15), stateful_step_count=20),
    )
