# SPDX-License-Identifier: Apache-2.0
"""main.py [PATTERN...]: runs the runtime cases whose name contains a pattern, or all."""
import importlib
import pathlib
import sys

sys.dont_write_bytecode = True

import harness  # noqa: E402

for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
    importlib.import_module(path.stem)

if __name__ == "__main__":
    sys.exit(harness.run_all(*sys.argv[1:]))
