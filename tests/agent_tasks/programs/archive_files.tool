import json
import posixpath
from datetime import datetime, timedelta


@example(
    arguments={"folder": "logs", "days": 30},
    files={"logs/a.log": "old", "logs/b.log": "kept"},
    stubs={
        "current_time": {"iso": "2024-03-01T00:00:00Z", "unix": 1709251200.0},
        "file_info": {
            "$each": [
                {"path": "logs/a.log", "type": "file", "size_bytes": 3, "modified": "2024-01-01T00:00:00Z"},
                {"path": "logs/b.log", "type": "file", "size_bytes": 4, "modified": "2024-02-28T00:00:00Z"},
            ]
        },
        "delete_file": {"$fails": "permission_denied"},
    },
    result={"archived": [], "refused": ["logs/a.log"], "bytes": 0},
)
def archive_files(folder: str, days: int) -> dict:
    """Copy the files of a folder that were not changed for some days to an archive, check the copies, and delete the originals.

    Args:
        folder: The folder. The archive is its folder "archive", by month, with an index.
        days: Files that are older are archived.
    """
    now = datetime.fromisoformat(tools.current_time()["iso"])
    archived, refused, total = [], [], 0
    index_path = posixpath.join(folder, "archive", "index.json")
    try:
        index = json.loads(tools.read_file(path=index_path))
    except ToolError as error:
        if error.code != "not_found":
            raise
        index = {}
    entries = [e for e in tools.list_directory(path=folder) if e["type"] == "file"]
    facts = parallel(tools.file_info(path=e["path"]) for e in entries)
    for info in facts:
        modified = datetime.fromisoformat(info["modified"])
        if now - modified <= timedelta(days=days):
            continue
        name = posixpath.basename(info["path"])
        month = posixpath.join(folder, "archive", f"{modified:%Y-%m}")
        tools.make_directory(path=month)
        copy = tools.copy_file(source=info["path"], target=posixpath.join(month, name), overwrite=True)
        try:
            gone = tools.delete_file(path=info["path"])
        except ToolError as error:
            if error.code != "permission_denied":
                raise
            refused.append(info["path"])
            continue
        if gone["sha256"] != copy["sha256"]:
            tools.copy_file(source=copy["path"], target=info["path"])
            raise ToolError(f"{info['path']} changed while it was archived")
        archived.append(info["path"])
        index[info["path"]] = {"path": copy["path"], "sha256": copy["sha256"], "modified": info["modified"]}
        total += copy["size_bytes"]
    if archived:
        tools.write_file(path=index_path, content=json.dumps(index, indent=2, sort_keys=True))
    return {"archived": archived, "refused": refused, "bytes": total}
