# SPDX-License-Identifier: Apache-2.0
"""report.md: the contents of report.json as Markdown."""


def cell(value):
    """Text for a cell of a Markdown table, without control characters, and with escaped column separators."""
    text = "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "".join(c if c.isprintable() else "?" for c in text).replace("|", "\\|")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


def of_keys(head, rows):
    """A table of dictionaries. head: key -> column header."""
    return table(list(head.values()), [[row[key] for key in head] for row in rows])


def exports(found):
    text = f"\n## Exports\n\n{found['exported']} of {found['listed']} known functions are exported.\n\n"
    text += table(["first bytes", "functions", "for example"],
                  [[key, value["functions"], value["such_as"]] for key, value in found["first_bytes"].items()])
    return text + "\n" + table(["name passed to cuGetProcAddress", "export"],
                               [*([key, value or "none"] for key, value in found["handed_out"].items()),
                                *([key, "an address that is not exported"] for key in found["handed_out_but_not_exported"])])


def witness(found):
    text = f"\n## The witness\n\nCUPTI {found['version']}, {found['library']}, has names for {found['functions']} functions. "
    text += f"Counted functions without a name in CUPTI: {cell(found['unknown']) or 'none'}.\n"
    if not found["programs"]:
        return text
    text += "\nEach program ran once, under CUPTI and the tools at the same time.\n\n"
    text += of_keys({"program": "program", "processes": "processes", "compared": "compared", "unequal": "unequal", "lost": "lost"}, [
        {"program": name, **one, "unequal": len(one["differences"])} for name, one in found["programs"].items()])
    differences = [{"program": name, **one} for name, some in found["programs"].items() for one in some["differences"]]
    return text + ("\n" + of_keys({"program": "program", "what": "count", "name": "name", "witness": "CUPTI", "tools": "gpusnoop"},
                                  differences) if differences else "")


def markdown(report):
    text = "# gpusnoop on a device\n\n"
    if report["exports"] and report["exports"]["stand_in"]:
        text += "A rehearsal: the driver is the stand-in, which does no work. No value here comes from a device.\n\n"
    text += table(["property", "value"], [
        *report["machine"].items(), ["driver library", report["driver"]],
        ["tracing", report["no_bpf"] and f"not possible: {report['no_bpf']}" or "works"],
        ["device", report["no_device"] and f"none: {report['no_device']}" or "works"]])
    if report["exports"]:
        text += exports(report["exports"])
    if report["findings"]:
        text += "\n## Findings\n\n" + of_keys({"what": "finding", "value": "value"}, report["findings"])
    if report["witness"]:
        text += witness(report["witness"])
    if report["costs"]:
        text += "\n## Overhead\n\nOperations per second, medians of the rounds.\n\n" + of_keys(
            {"load": "operation", "way": "traced by", "per_second": "per second", "least": "minimum", "most": "maximum",
             "slower_percent": "slower by %", "goal_percent": "goal: at most %", "rounds": "rounds"}, report["costs"])
    return text + "\n## Checks\n\n" + of_keys({"name": "check", "result": "result", "seconds": "seconds", "reason": "reason"},
                                              report["checks"])
