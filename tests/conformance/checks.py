#!/usr/bin/env python3
"""checks.py DIRECT EDGE README FLOOR: whether the suite finds the same at a server and through the edge before it.

Each argument of the first two is a folder of results. Every check must be there twice, with the same status and the same
words; a scenario that the server itself does not pass, or that the edge answers otherwise, has a row of the table below
"## server-everything" in README, which says how it ends at either. A row that says something else is a fault too, and so
are fewer than FLOOR checks, since a dead server passes many scenarios.
"""
import collections
import glob
import json
import os
import re
import sys

GOOD = ("SUCCESS", "INFO", "SKIPPED")
COUNTED = ("SUCCESS", "FAILURE")


def scenarios(folder):
    """What each scenario found: of every check its id, its status and its words."""
    found = collections.defaultdict(list)
    for path in sorted(glob.glob(f"{folder}/server-*/checks.json")):
        name = re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT.*$", r"\1", os.path.basename(os.path.dirname(path)))
        with open(path, encoding="utf-8") as file:
            found[name] += [(check["id"], check["status"], plain(check)) for check in json.load(file)]
    return found


def plain(check):
    """The words of a check without what differs in every run."""
    # Heads are the probe's to compare, and the session is the edge's own.
    details = {key: value for key, value in (check.get("details") or {}).items() if key not in ("headers", "sessionId")}
    text = json.dumps([check.get("errorMessage"), details], sort_keys=True)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    # How much a server says of its own before the suite leaves is chance.
    text = re.sub(r'"messagesValidated": [1-9]\d*', '"messagesValidated": SOME', text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UUID", text)


def ending(checks):
    return "pass" if all(status in GOOD for _, status, _ in checks) else "fail"


def rows(path):
    text = open(path, encoding="utf-8").read().split("\n## server-everything\n", 1)[1].split("\n## ", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {name.strip("`"): (direct, edge) for name, direct, edge, _ in cells if name.startswith("`")}


def main(direct, edge, readme, floor):
    direct, edge, told, faults = scenarios(direct), scenarios(edge), rows(readme), []
    for name in sorted({*direct, *edge, *told}):
        at, through = direct.get(name, []), edge.get(name, [])
        endings = (ending(at) if at else "absent", ending(through) if through else "absent")
        if endings != told.get(name, ("pass", "pass")):
            faults.append(f"{name}: {endings[0]} at the server, {endings[1]} through the edge, and README says otherwise")
        if endings[0] == endings[1] and at != through:
            faults += [f"{name}: {mark} {line}" for mark, lines in (("-", at), ("+", through)) for line in lines]
    counts = [sum(status in COUNTED for checks in found.values() for _, status, _ in checks) for found in (direct, edge)]
    same = sum(direct[name] == edge[name] for name in direct)
    print(f"server-everything: {counts[0]} checks direct, {counts[1]} through the edge, {same} of {len(direct)} scenarios alike")
    if min(counts) < int(floor):
        faults.append(f"{floor} checks are wanted")
    for fault in faults:
        print(f"  {fault}"[:1500])
    return 1 if faults else 0


sys.exit(main(*sys.argv[1:]))
