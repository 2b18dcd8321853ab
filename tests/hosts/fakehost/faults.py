"""What goes wrong, at which call: `faults.json` is a list of what a test wants.

`{"at": 7}` means the seventh call of any program, `{"call": ["zfs", "clone"], "nth": 2}` the second that begins so. `do` is
`fail` (`code`, `stderr`), `print` (`stdout`, `repeat`, `code`), `garbage`, `hang`, `stubborn` (hangs, and TERM does not end
it), `die` or `kill` (the playground, and not the program). `after` has the program do its work first.
"""

import json
import os
import signal
import sys
import time

from . import processes


def arm(world, argv):
    """Counts a call, writes it down, and yields the fault that it is to have."""
    with world.model() as model:
        model["calls"] += 1
        number = model["calls"]
        chosen = None
        for fault in wanted(world):
            if "call" in fault and argv[: len(fault["call"])] == fault["call"]:
                met = model.setdefault("met", {})
                key = json.dumps(fault, sort_keys=True)
                met[key] = met.get(key, 0) + 1
                if met[key] == fault.get("nth", met[key]):
                    chosen = fault
            elif fault.get("at") == number:
                chosen = fault
        line = {"call": number, "argv": argv, **({"fault": chosen["do"]} if chosen else {})}
        world.note("calls", json.dumps(line))
    return chosen


def wanted(world):
    try:
        with open(world.path("faults.json")) as file:
            return json.load(file)
    except FileNotFoundError:
        return []


def strike(fault, code):
    """Does what was wanted; `code` is what the program would have left."""
    what = fault["do"]
    if what == "fail":
        print(fault.get("stderr", "it was told to fail"), file=sys.stderr)
        return fault.get("code", 1)
    if what == "print":
        for _ in range(fault.get("repeat", 1)):
            sys.stdout.write(fault["stdout"])
        return fault.get("code", code)
    if what == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe\x00\x80 \xc3\x28\n" * 8)
        return fault.get("code", code)
    if what in ("hang", "stubborn"):
        if what == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # Until its host is gone: whoever would have ended it may have been killed itself.
        while os.path.exists(sys.argv[0]):
            time.sleep(0.5)
        return code
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "kill":
        os.kill(processes.playground(), signal.SIGKILL)
        return code
    raise SystemExit(f"no such fault: {what}")
