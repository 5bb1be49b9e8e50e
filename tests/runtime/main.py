# SPDX-License-Identifier: Apache-2.0
"""Command line of the runtime cases: runs all of them, or those whose name contains a pattern.

    main.py [--short | --long] [--together | --alone]
    main.py PATTERN...

--short: cases of make test. --long: the others. --together: cases that may run while others run. --alone: cases that
must run alone."""
import importlib
import pathlib
import sys

sys.dont_write_bytecode = True

import harness  # noqa: E402

for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
    # The bundle for a device contains only what cases marked gpu need (tests/gpu/bundle).
    if not harness.on_device or "gpu=" in path.read_text():
        importlib.import_module(path.stem)

if __name__ == "__main__":
    which = alone = None
    patterns = []
    for word in sys.argv[1:]:
        if word in ("--short", "--long"):
            which = word[2:]
        elif word in ("--together", "--alone"):
            alone = word == "--alone"
        else:
            patterns.append(word)
    sys.exit(harness.run_all(*patterns, which=which, alone=alone))
