"""Every key of a section is parsed as the table of rules declares it."""

from __future__ import annotations

import pytest
import yaml

from albert_tools import Failure
from albert_tools.engine.model.limits import RunLimits
from albert_tools.engine.policy.document import LimitsDocument
from albert_tools.engine.policy.rule_kind import CategoryKey, Key, ListKey
from albert_tools.engine.policy.rule_table import KEYS
from albert_tools.engine.policy.settings import Governance, read_governance


def read(key: str, value: object) -> Governance:
    return read_governance({"tools": {"bash": {key: value}}})


def refusal(key: str, value: object) -> str:
    with pytest.raises(Failure) as caught:
        read(key, value)
    return caught.value.message.partition(f"tools.bash.{key}")[2]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_the_example_of_a_key_is_accepted(key: Key) -> None:
    section = read(key.name, yaml.safe_load(key.example)).tools["bash"]
    assert list(section) == [key.name]
    assert key.of(section)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_value_of_another_type_is_refused(key: Key) -> None:
    """Otherwise a key without a value would count as missing, and would restrict nothing."""
    assert refusal(key.name, None) == ": it has no value; write one, or remove the key"
    valid = "'read_only'" if isinstance(key, CategoryKey) else "a valid "
    assert refusal(key.name, {}).startswith(f": input should be {valid}")
    assert refusal(key.name, [3] if isinstance(key, ListKey) else "3")


def test_only_a_tool_names_a_category() -> None:
    with pytest.raises(Failure, match=r"categories\.network\.category: there is no such key"):
        read_governance({"categories": {"network": {"category": "read_only"}}})
    assert refusal("category", "netwrk").endswith("did you mean 'network'?")


def test_names_of_modes_are_checked() -> None:
    assert refusal("allowed_in_modes", ["NORMAL", "ALLERT"]) == (
        ".1: the modes are NORMAL, ALERT, DEGRADED, LOCKDOWN, RECOVERY, not 'ALLERT'; did you mean 'ALERT'?"
    )


def test_every_limit_of_a_run_can_be_lowered() -> None:
    assert set(LimitsDocument.model_fields) == set(RunLimits._fields)
    with pytest.raises(Failure, match=r"limits\.calls: it has no value"):
        read_governance({"limits": {"calls": None}})
