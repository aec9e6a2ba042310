"""The names of the agent's own tools and of actions. They define, find and run programs, or control what runs.

No program can call them. No primitive and no saved tool can have such a name, so in a lease it always means the action.
"""

#: The agent's own tools that only read. Every lease covers them; they show nothing that the lease does not cover.
READING_TOOLS = ("search_tools", "describe_tool", "check_tool", "list_runs", "language_help", "suggest_tools")
#: The agent's own tools, in the order in which an agent gets them. `engine.agent` declares them.
AGENT_TOOLS = (
    "search_tools",
    "describe_tool",
    "check_tool",
    "define_tool",
    "remove_tool",
    "run_tool",
    "run_source",
    "list_runs",
    "language_help",
    "suggest_tools",
)
#: No tool has this name, so a lease that covers it covers all tools.
NO_TOOL = "_"
#: Those of them whose argument `source` is shown line by line.
SOURCE_TOOLS = ("check_tool", "define_tool", "run_source")
#: `engine.actions` declares the actions.
RESERVED = frozenset((*AGENT_TOOLS, "revoke_session", "cancel_run", "resume_run", "read_records", "put_content"))
