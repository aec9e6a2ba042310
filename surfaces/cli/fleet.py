"""``albert fleet``: shows the queues and workers, or creates the tables and the roles of a home in a database."""

from __future__ import annotations

import argparse

from albert_tools.surfaces.cli.service_options import home_of
from albert_tools.surfaces.text.console import Console, safe
from albert_tools.surfaces.text.person import demand_person
from albert_tools.surfaces.text.usage_error import Usage

_MAY = {
    "worker": "runs tools; each other role includes this one",
    "author": "defines and removes tools",
    "reviewer": "reviews tools and answers questions",
    "operator": "writes the rules, the mode, the mounted servers and the schedules, and deletes old entries and finished runs",
}


def fleet(options: argparse.Namespace, console: Console) -> int:
    """Show the state, or create what is missing and grant each role what is its own."""
    if options.action == "status":
        from albert_tools.surfaces.cli.fleet_status import fleet_status

        return fleet_status(options, console)
    demand_person("roles are created")
    homes = home_of(options).local
    if not homes.url:
        raise Usage(
            "a folder has no roles", "give the URL of a database: --home postgresql://administrator@host/database"
        )
    from albert_tools.store.postgres_layout import initialize

    roles = initialize(homes.url)
    if console.json:
        console.document({"ok": True, "home": homes.shown, "roles": roles})
        return 0
    console.say(f"{safe(homes.shown)} is ready, with the roles")
    for role, name in roles.items():
        console.say(f"  {safe(name)}  {_MAY[role]}", 4)
    console.note(
        f"Grant them to the people's own users: CREATE USER ada PASSWORD '…' IN ROLE \"{safe(roles['author'])}\""
    )
    return 0
