# SPDX-License-Identifier: Apache-2.0
"""Finds the tests that changed files can affect, from the graph of #include lines and Python imports.

A header brings the source file that implements it, and a skeleton (X.skel.h) the BPF program that it is made from. So
the files below a tool's main file are all the files that the tool is made of."""
import functools
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
included = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
imported = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.M)


def changed_files(base):
    """Paths relative to the root: changes since the commit, staged or not, and new files."""
    def git(*words):
        command = ["git", "-C", root, "-c", "safe.directory=*", *words]
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        except FileNotFoundError:
            sys.exit("git is not installed: it lists the changed files")
        except subprocess.CalledProcessError as error:
            sys.exit(f"git cannot list the changed files: {error.stderr.partition(chr(10))[0]}")
    paths = git("diff", "-z", "--name-only", base) + git("ls-files", "-z", "--others", "--exclude-standard")
    return {path for path in paths if path}


@functools.cache
def needs(path):
    """Files that a file needs directly."""
    file = root / path
    text = file.read_text(errors="replace")
    found = set()
    if file.suffix == ".py":
        return {f"{folder}/{name}.py" for name in imported.findall(text) for folder in [file.parent.relative_to(root)]
                if (file.parent / f"{name}.py").exists()}
    for name in included.findall(text):
        if name.endswith(".skel.h"):
            found.add(f"bpf/{name.removesuffix('.skel.h')}.bpf.c")
        elif name == "driver_tables.hpp":
            found |= {"scripts/driver-tables", *(str(table.relative_to(root)) for table in root.glob("data/*.tsv"))}
        for folder in file.parent, root, root / "src", root / "bpf":
            if (folder / name).exists():
                found.add(str((folder / name).resolve().relative_to(root)))
                break
    if file.suffix == ".hpp":
        found |= {str(source.relative_to(root)) for source in file.parent.glob(f"{file.stem}*.cpp")}
    return {each for each in found if (root / each).exists()}


def all_below(paths):
    """The files, and all files that they need."""
    seen, left = set(), [str(path.relative_to(root)) for path in paths]
    while left:
        path = left.pop()
        if path not in seen:
            seen.add(path)
            left += needs(path)
    return seen


def sources(folder):
    return [path for path in (root / folder).rglob("*") if path.suffix in (".cpp", ".hpp", ".c", ".h", ".def")]


def tools():
    return [folder.name for folder in sorted((root / "tools").iterdir()) if folder.is_dir()]


def is_document(path):
    return path.startswith(("docs/", "man/", "tests/docs/", "deploy/")) or path.endswith((".md", "example.txt"))


class Selection:
    """The tests to run: names of unit-test files, of tools, and of files of runtime cases; and whole groups."""

    def __init__(self, changed):
        self.reasons = []
        everything = sorted(path for path in changed if path == "Makefile" or path.endswith(".mk") or path in (
            "tests/runtime/harness.py", "tests/runtime/main.py", "tests/run"))
        if everything:
            self.reasons.append(f"everything: {everything[0]}")
        self.everything = bool(everything)
        self.units = self.affected("unit tests", changed, {
            test.stem: [test] for test in (root / "tests/unit").rglob("*_test.cpp")})
        self.tools = self.affected("tools", changed, {
            tool: [*sources(f"tools/{tool}"), root / f"bpf/{tool}.bpf.c"] if (root / f"bpf/{tool}.bpf.c").exists()
            else sources(f"tools/{tool}") for tool in tools()})
        self.kernel_side = self.affected("tests without probes", changed, {
            tool: [root / f"bpf/{tool}.bpf.c"] for tool in self.tools if (root / f"bpf/{tool}.bpf.c").exists()})
        if any(path.startswith("tests/bpf/") for path in changed):
            self.kernel_side = tools()
        self.files = self.affected("runtime cases", changed, {
            test.stem.removeprefix("test_"): [test] for test in (root / "tests/runtime").glob("test_*.py")})
        stand_in = sorted(path for path in changed if path.startswith("tests/standin/"))
        if stand_in:
            self.reasons.append(f"all runtime cases: {stand_in[0]}")
            self.tools = tools()
        self.documents = self.tools or any(map(is_document, changed))

    def affected(self, what, changed, made_of):
        """Names whose files include a changed one."""
        names, causes = [], set()
        for name, files in made_of.items():
            if cause := all_below(files) & changed:
                names.append(name)
                causes |= cause
        if names:
            self.reasons.append(f"{what} {', '.join(names)}: {', '.join(sorted(causes))}")
        return names
