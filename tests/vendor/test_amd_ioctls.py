# SPDX-License-Identifier: Apache-2.0
"""The table of AMD's commands (data/amd.tsv) compared with the kernel's headers, of 6.12 and the newest in Debian."""
import re
import subprocess

import harness
from harness import case, check, equal
from vendor import each, fetched, fetched_file

headers = {"kfd": "kfd_ioctl.h", "amdgpu": "drm/amdgpu_drm.h"}
directions = {"w": 1, "r": 2, "rw": 3}
macros = re.compile(r"^#define\s+(AMDKFD_IOC_\w+|DRM_IOCTL_AMDGPU_\w+)\b", re.M)


def commands(version, header):
    """{name: code} of the commands in a header, evaluated by a compiler."""
    names = macros.findall(header.read_text())
    source = harness.here / "commands.c"
    source.write_text(f'#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n' + "".join(
        f'    printf("%s %lu\\n", "{name}", (unsigned long){name});\n' for name in names) + "}\n")
    program = source.with_suffix("")
    folder = fetched / "kernel" / version
    subprocess.run(["cc", f"-I{folder}", f"-I{folder}/drm", source, "-o", program], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {name.replace("DRM_IOCTL_", "DRM_"): int(code) for name, code in map(str.split, lines)}


def table(driver):
    """{name: codes} in data/amd.tsv. A code has no direction and size if the command has no struct, or an unknown
    one."""
    rows = [line.split("\t") for line in (harness.root / "data/amd.tsv").read_text().splitlines()[1:]]
    magic, codes = {"kfd": ord("K"), "amdgpu": ord("d")}[driver], {}
    for owner, number, name, direction, size in rows:
        if owner == driver:
            encoded = 0 if size == "-" else directions[direction] << 30 | int(size) << 16
            codes.setdefault(name, set()).add(encoded | magic << 8 | int(number, 16))
    return codes


def header(version, driver):
    return fetched_file(f"kernel/{version}/{headers[driver]}")


@case(each=each(f"{version}/{driver}" for driver in headers for version in ("6.12", "newest")))
def table_has_all_commands(which):
    version, driver = which.split("/")
    made, known = commands(version, header(version, driver)), table(driver)
    check(len(made) >= (35 if driver == "kfd" else 15), f"too few commands in the header: {sorted(made)}")
    equal({name: hex(code) for name, code in made.items() if code not in known.get(name, ())}, {}, "commands that the table lacks")


@case(each=each(headers))
def headers_have_all_commands(driver):
    """Each command in the table that has a size is in one of the headers. A name can have two codes: the struct of a
    queue grew in 6.12."""
    made = set().union(*(commands(version, header(version, driver)).values() for version in ("6.12", "newest")))
    unknown = {name for name, codes in table(driver).items() if max(codes) >> 16 and not codes & made}
    equal(unknown, set(), "commands that no header has")
