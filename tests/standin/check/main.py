# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import harness

harness.build = pathlib.Path(sys.argv[1])

import libraries  # noqa: E402,F401: importing registers their checks
import driver  # noqa: E402,F401
import programs  # noqa: E402,F401
import scripts  # noqa: E402,F401
import memory  # noqa: E402,F401
import allocations  # noqa: E402,F401
import mapping  # noqa: E402,F401
import forwarding  # noqa: E402,F401
import graphs  # noqa: E402,F401
import probes  # noqa: E402,F401
import ioctls  # noqa: E402,F401
import device  # noqa: E402,F401

sys.exit(harness.run_all())
