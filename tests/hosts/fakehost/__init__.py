"""A host of jails or of virtual machines that is not there, told by one model.

Each of its programs is a link to one file that calls `main`. They refuse what they do not know, by exit code 99 and a line
in `violations`, so that a plan cannot drift into arguments that nobody has looked up.
"""

import importlib
import os
import sys

from . import faults
from .world import Failed, Refused, World

PROGRAMS = {
    "freebsd": "zfs mount umount jail jls jexec rctl sysctl chflags ifconfig",
    "files": "mkdir cp mv ln rm rmdir chmod chown touch cat head cmp truncate readlink stat tee mktemp sh",
    "lima": "limactl",
    "remote": "ssh sudo timeout",
}
"""Which module has which programs. A plan runs a hundred of them, so each loads its own module alone."""

REFUSED = 99


def main(root):
    world = World(root)
    argv = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
    if argv[0] == "host":
        return manage(world, *argv[1:])
    fault = faults.arm(world, argv)
    try:
        if fault is None or fault.get("after"):
            code = program(argv[0])(world, argv)
        else:
            code = 0
        sys.stdout.flush()
    except Failed as failed:
        print(f"{argv[0]}: {failed}", file=sys.stderr)
        code = failed.code
    except Refused as refused:
        world.note("violations", f"{argv}: {refused}")
        print(f"{argv[0]}: not in the model: {refused}", file=sys.stderr)
        code = REFUSED
    return code if fault is None else faults.strike(fault, code)


def program(name):
    (module,) = [module for module, names in PROGRAMS.items() if name in names.split()]
    return importlib.import_module(f".{module}", __name__).PROGRAMS[name]


def manage(world, verb):
    """What a test does to the host itself."""
    if verb == "new":
        world.found([name for names in PROGRAMS.values() for name in names.split()])
    elif verb == "reboot":
        from . import lima, processes

        with world.model() as model:
            for tree in [jail["path"] for jail in model["jails"].values()] + lima.trees(world, model):
                processes.end_inside(tree)
            model.update(mounts=[], jails={}, rules=[])
            for machine in model["machines"].values():
                machine["status"] = "Stopped"
    else:
        raise SystemExit(f"host: new or reboot, and not {verb}")
    return 0
