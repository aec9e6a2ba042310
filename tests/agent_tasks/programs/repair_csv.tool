import csv
import io


def _records(text: str, delimiter: str) -> list:
    """Read records with a state machine that keeps quotes that don't follow the rules."""
    records, record, field, state = [], [], "", "start"
    i = 0
    while i < len(text):
        c = text[i]
        after = text[i + 1] if i + 1 < len(text) else "\n"
        if state == "quoted":
            if c == '"' and after == '"' and i + 1 < len(text):
                field += '"'
                i += 1
            elif c == '"' and after in delimiter + "\r\n":
                state = "closed"
            else:
                field += c
        elif c == delimiter:
            record.append(field)
            field, state = "", "start"
        elif c == "\n":
            record.append(field)
            records.append(record)
            record, field, state = [], "", "start"
        elif c == "\r" and after == "\n":
            pass
        elif c == '"' and state == "start":
            state = "quoted"
        else:
            field += c
            state = "plain"
        i += 1
    if state == "quoted":
        raise ToolError(f"record {len(records) + 1}: a quote is never closed")
    if field or record:
        records.append(record + [field])
    return records


@example(
    arguments={"source": "in.csv", "target": "out.csv"},
    files={"in.csv": 'id;text\r\n1;"say "hi" now"\r\n2;5" disk\r\n\r\n3;"a;b\nc"\r\n4;x;y\r\n5\r\n'},
    result={"delimiter": ";", "rows": 3, "rejected": [{"record": 6, "fields": ["4", "x", "y"]}, {"record": 7, "fields": ["5"]}]},
    expect_files={"out.csv": 'id,text\n1,"say ""hi"" now"\n2,"5"" disk"\n3,"a;b\nc"\n'},
)
def repair_csv(source: str, target: str) -> dict:
    """Repair a CSV file with broken quotes and an unknown delimiter; write it in the usual form.

    Args:
        source: The file to read.
        target: The file to write.
    """
    text = tools.read_file(path=source)
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=lambda d: header.count(d))
    records = _records(text, delimiter)
    width = len(records[0])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    rows, rejected = -1, []
    for number, record in enumerate(records, 1):
        if record == [""]:
            continue
        if len(record) != width:
            rejected.append({"record": number, "fields": record})
            continue
        writer.writerow(record)
        rows += 1
    tools.write_file(path=target, content=out.getvalue())
    return {"delimiter": delimiter, "rows": rows, "rejected": rejected}
