# SPDX-License-Identifier: Apache-2.0
"""Command line of the runtime cases: runs all of them, or those whose name contains a pattern.

    main.py [--short | --medium | --long] [--together | --alone]
    main.py --smoke TOOL
    main.py --tools TOOL,... --files FILE,...   the short cases of these tools and of these files (tests/changed.py)
    main.py PATTERN...

--short: cases of make test. --medium: those that CI adds. --long: the others. --together: cases that may run while
others run. --alone: cases that
must run alone."""
import argparse
import importlib
import pathlib
import sys

sys.dont_write_bytecode = True

import harness  # noqa: E402

for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
    # The bundle for a device contains only what cases marked gpu need (tests/gpu/bundle).
    if not harness.on_device or "gpu=" in path.read_text():
        importlib.import_module(path.stem)

if not harness.on_device and (missing := harness.short.missing(harness.cases)):
    sys.exit(f"short.py lists cases that do not exist: {', '.join(missing)}")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", dest="which", action="store_const", const="short")
    parser.add_argument("--medium", dest="which", action="store_const", const="medium")
    parser.add_argument("--long", dest="which", action="store_const", const="long")
    parser.add_argument("--alone", action="store_true", default=None)
    parser.add_argument("--together", dest="alone", action="store_false")
    parser.add_argument("--smoke", metavar="TOOL")
    parser.add_argument("--tools", metavar="TOOL,...", default="")
    parser.add_argument("--files", metavar="FILE,...", default="")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    options = parser.parse_args()
    if options.tools or options.files:
        options.patterns = harness.short_cases_of(options.tools.split(","), options.files.split(","))
    sys.exit(harness.run_all(*options.patterns, which=options.which, alone=options.alone, smoke=options.smoke))
