"""The names of the agent's own tools and of actions. They define, find and run programs, or control what runs.

No program can call them. No primitive and no saved tool can have such a name, so in a lease it always means the action.
"""

#: `engine.actions` declares those that the service judges; surfaces offer the other ones to agents.
RESERVED = frozenset(
    "define_tool remove_tool revoke_session cancel_run resume_run read_records run_source run_tool search_tools describe_tool "
    "check_tool list_runs language_help".split()
)
