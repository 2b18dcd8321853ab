#!/usr/bin/env python3
"""compare.py DIRECT EDGE README: where two outputs of probe.py differ, and whether README says why.

A difference is explained by a table row that begins with its label in back quotes. A difference without a row is a
fault, and so is a row without a difference.
"""
import difflib
import re
import sys


def blocks(path):
    """Label -> answer, with what differs in every run taken out."""
    found, label = {}, None
    for line in open(path, encoding="utf-8"):
        if line.startswith("## "):
            label = line[3:].strip()
            found[label] = []
        elif label is not None and line.startswith("   "):
            found[label].append(plain(line.strip()))
    return found


def plain(text):
    text = re.sub(r"'mcp-session-id': '[^']*'", "'mcp-session-id': '…'", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    # A listening stream's keep-alives come or do not come within the probe's patience.
    text = re.sub(r"(: ?[a-z-]*\\n\\n)+", "", text)
    return re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID", text)


def main():
    direct, edge = blocks(sys.argv[1]), blocks(sys.argv[2])
    explained = set(re.findall(r"^\| `([^`]+)` \|", open(sys.argv[3], encoding="utf-8").read(), re.M))
    if len(direct) < LEAST:
        sys.exit(f"conformance: only {len(direct)} probes were answered directly")
    differing = [label for label in {**direct, **edge} if direct.get(label) != edge.get(label)]
    for label in differing:
        print(f"## {label}")
        for line in difflib.ndiff(direct.get(label, []), edge.get(label, [])):
            if line[0] in "+-":
                print(f"   {line}")
    unexplained = [label for label in differing if label not in explained]
    stale = sorted(explained - set(differing))
    print(f"\n{len(direct)} probes, {len(differing)} differ, {len(unexplained)} of these unexplained")
    for label in unexplained:
        print(f"unexplained: {label}")
    for label in stale:
        print(f"explained but the same: {label}")
    sys.exit(1 if unexplained or stale else 0)


# As many as probe.py sends when a legacy session was had.
LEAST = 55

if __name__ == "__main__":
    main()
