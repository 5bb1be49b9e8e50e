# SPDX-License-Identifier: Apache-2.0
"""The report for people: report.md, from what report.json holds."""


def cell(value):
    """Text for a table of Markdown, with nothing in it that a terminal or a table would take as more than text."""
    text = "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "".join(c if c.isprintable() else "?" for c in text).replace("|", "\\|")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


def of_keys(head, rows):
    """A table of rows that are dictionaries; head: what each key is called."""
    return table(list(head.values()), [[row[key] for key in head] for row in rows])


def exports(found):
    text = f"\n## Exports\n\nOf {found['listed']} functions that we know {found['exported']} are exported.\n\n"
    text += table(["first bytes", "functions", "such as"],
                  [[key, value["functions"], value["such_as"]] for key, value in found["first_bytes"].items()])
    return text + "\n" + table(["asked of cuGetProcAddress", "export"],
                               [*([key, value or "none"] for key, value in found["handed_out"].items()),
                                *([key, "an address that is not exported"] for key in found["handed_out_but_not_exported"])])


def witness(found):
    text = f"\n## The witness\n\nCUPTI {found['version']}, {found['library']}, has names for {found['functions']} functions; "
    text += f"not for these that are counted: {cell(found['unknown']) or 'none'}.\n"
    if not found["programs"]:
        return text
    text += "\nEach program ran once, seen by CUPTI and by the tools at the same time.\n\n"
    text += of_keys({"program": "program", "processes": "processes", "compared": "compared", "unequal": "unequal", "lost": "lost"}, [
        {"program": name, **one, "unequal": len(one["differences"])} for name, one in found["programs"].items()])
    differences = [{"program": name, **one} for name, some in found["programs"].items() for one in some["differences"]]
    return text + ("\n" + of_keys({"program": "program", "what": "what", "name": "of", "witness": "CUPTI", "tools": "gpusnoop"},
                                  differences) if differences else "")


def markdown(report):
    text = "# gpusnoop on a device\n\n"
    if report["exports"] and report["exports"]["stand_in"]:
        text += "A rehearsal: the driver is our stand-in, which does no work. No figure here is one of a device.\n\n"
    text += table(["what", "found"], [
        *report["machine"].items(), ["driver library", report["driver"]],
        ["tracing", report["no_bpf"] and f"not possible: {report['no_bpf']}" or "works"],
        ["device", report["no_device"] and f"none: {report['no_device']}" or "works"]])
    if report["exports"]:
        text += exports(report["exports"])
    if report["findings"]:
        text += "\n## Findings\n\n" + of_keys({"what": "what", "value": "found"}, report["findings"])
    if report["witness"]:
        text += witness(report["witness"])
    if report["costs"]:
        text += "\n## What tracing costs\n\nSo often a second, by the median of the rounds.\n\n" + of_keys(
            {"load": "what", "way": "traced by", "per_second": "a second", "least": "least", "most": "most",
             "slower_percent": "slower by %", "goal_percent": "at most, by our goal", "rounds": "rounds"}, report["costs"])
    return text + "\n## Checks\n\n" + of_keys({"name": "check", "result": "result", "seconds": "seconds", "reason": "reason"},
                                              report["checks"])
