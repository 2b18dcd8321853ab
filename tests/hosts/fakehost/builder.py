"""What a machine in which faculties are built has: the programs of a fresh one and those that they install, all of them fake.

They are in `builder/`, found before the host's, and as strict: what they do not know ends with code 99, which is a violation.
Nothing of this host's packages is touched, and nothing is fetched.
"""

import os

SUFFIX = "-faculties-builder"
PLACE = "/opt/fakes"
REFUSED = 99


def is_builder(name):
    return name.endswith(SUFFIX)


def binds():
    """What is mounted into it beside what its file says."""
    return [(os.path.join(os.path.dirname(os.path.abspath(__file__)), "builder"), PLACE, "ro")]


def path(guest_path):
    return f"{PLACE}:{guest_path}"
