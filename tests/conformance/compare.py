#!/usr/bin/env python3
"""compare.py DIRECT EDGE README: where two outputs of probe.py differ, and whether README says why.

A difference is explained by a row of the table below "## Differences" that names its label in its first cell. One
without a row is a fault, and so is a label in a row that does not differ.

Two things differ everywhere and are held against their own rule instead: `Cache-Control`, which every answer of the
edge must carry, and the words of an error that has the same status, code and id.
"""
import difflib
import re
import sys


def blocks(path):
    found, label = {}, None
    for line in open(path, encoding="utf-8"):
        if line.startswith("## "):
            label = line[3:].strip()
            found[label] = []
        elif label is not None and line.startswith("   "):
            found[label].append(line.strip())
    return found


def caches(answer):
    """Whether an answer of the edge says that nobody may store it."""
    stream = "'content-type': 'text/event-stream'" in answer[0]
    return f"'cache-control': '{'no-cache, no-transform' if stream else 'no-store'}'" in answer[0]


def plain(text):
    """A line without what differs in every run or everywhere."""
    text = re.sub(r"(, )?'cache-control': '[^']*'", "", text).replace("{, ", "{")
    text = re.sub(r"'mcp-session-id': '[^']*'", "'mcp-session-id': '…'", text)
    text = re.sub(r'(\{"jsonrpc":"2\.0",)("id":[^,]*,)("error":\{"code":-?\d+).*', r"\1\2\3…", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    # Whether a keep-alive falls into the probe's patience is chance.
    return re.sub(r"(?<=\\n):[^\\]*(\\n)+", "", text)


def explained(path):
    table = open(path, encoding="utf-8").read().partition("## Differences")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|([^|]*`[^|]*)\|", table, re.M)
    return {label for row in rows for label in re.findall(r"`([^`]+)`", row)}


def main():
    direct, edge, known = blocks(sys.argv[1]), blocks(sys.argv[2]), explained(sys.argv[3])
    if len(direct) < LEAST or len(edge) < LEAST:
        sys.exit(f"only {len(direct)} and {len(edge)} probes were made, {LEAST} are wanted")
    faults = [f"may be stored: {label}" for label, answer in edge.items() if not caches(answer)]
    differing = []
    for label in {**direct, **edge}:
        there, here = ([plain(line) for line in side.get(label, [])] for side in (direct, edge))
        if there == here:
            continue
        differing.append(label)
        print(f"## {label}")
        for line in difflib.ndiff(there, here):
            if line[0] in "+-":
                print(f"   {line}")
    faults += [f"differs, unexplained: {label}" for label in differing if label not in known]
    faults += [f"explained, but does not differ: {label}" for label in sorted(known - set(differing))]
    print(f"\n{len(direct)} probes, {len(differing)} differ, {len(faults)} faults", *faults, sep="\n")
    sys.exit(1 if faults else 0)


# As many as probe.py makes when it was given a legacy session.
LEAST = 61

if __name__ == "__main__":
    main()
