"""Programs of files, with FreeBSD's options. The host's own do the work, on paths that this host has.

A file that only takes appends (`sappnd`) is kept from every other change, as the kernel would keep it. What a shell's own
redirection does is not seen here.
"""

import os
import re
import sys

from .freebsd import options
from .processes import run
from .world import Failed, Refused, privileged, through, within

READABLE = ("/etc/resolv.conf", "/dev/null")


def operand(world, model, path, reading=False):
    if reading and path in READABLE:
        return path
    return through(model, world.inside(path))


def guard(model, path):
    """Says no where something that only takes appends would be changed, moved or linked."""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for flagged, flags in model["flags"].items():
        if flags and within(flagged, real):
            raise Failed(f"{path}: Operation not permitted")


def real(program, *words):
    return run([f"/bin/{program}", *words])


def plain(letters, **rules):
    """A program whose options are the same everywhere. `rules`: `reads` and `guards` choose operands."""

    def program(world, argv):
        privileged()
        chosen, operands = options(argv, letters)
        skip = rules.get("skip", 0)
        first, paths = operands[:skip], operands[skip:]
        reads = rules.get("reads", lambda count: [])(len(paths))
        guards = rules.get("guards", lambda chosen, count: [])(chosen, len(paths))
        with world.model() as model:
            led = [operand(world, model, path, number in reads) for number, path in enumerate(paths)]
            for number in guards:
                guard(model, led[number])
                # Of `cp a folder` it is `folder/a` that is written.
                if number == len(led) - 1 > 0 and os.path.isdir(led[number]):
                    guard(model, os.path.join(led[number], os.path.basename(led[0])))
        words = [word for letter, value in chosen.items() for word in (letter, value) if word]
        translated = rules.get("translate", lambda words, first: (words, first))(words, first)
        return real(argv[0], *translated[0], "--", *translated[1], *led)

    return program


def owners(words, first):
    """`root:wheel`, by numbers: whoever runs the tests is root here."""
    if first[0] not in ("root:wheel", "root", "0:0"):
        raise Refused(f"an owner {first[0]!r}")
    return words, [f"{os.getuid()}:{os.getgid()}"]


def without_following(words, first):
    """FreeBSD's `-h`, of a target that is a link to a folder, by GNU's name."""
    return ["-T" if word == "-h" else word for word in words], first


def stat(world, argv):
    """Of any path: looking harms nothing."""
    chosen, paths = options(argv, "nLf:")
    if "-f" not in chosen:
        raise Refused("stat without a format")
    code = 0
    with world.model() as model:
        for path in paths:
            led = through(model, path)
            try:
                its = os.stat(led) if "-L" in chosen else os.lstat(led)
            except OSError as fault:
                print(f"stat: {path}: stat: {fault.strerror}", file=sys.stderr)
                code = 1
                continue
            flags = ",".join(model["flags"].get(led, [])) or "-"
            text = re.sub(r"%([LHS]?[a-zA-Z])", lambda found: field(found[1], its, path, flags), chosen["-f"])
            print(text, end="" if "-n" in chosen else "\n")
    return code


def field(letter, its, path, flags):
    ours = its.st_uid == os.geteuid()
    kinds = {0o04: "Directory", 0o10: "Regular File", 0o12: "Symbolic Link"}
    known = {
        "Sf": flags, "i": its.st_ino, "l": its.st_nlink, "z": its.st_size, "d": its.st_dev, "N": path,
        "u": 0 if ours else its.st_uid, "Su": "root" if ours else str(its.st_uid),
        "g": 0 if ours else its.st_gid, "Sg": "wheel" if ours else str(its.st_gid),
        "p": oct(its.st_mode)[2:], "Lp": oct(its.st_mode & 0o777)[2:], "HT": kinds.get(its.st_mode >> 12, "Other"),
    }
    if letter not in known:
        raise Refused(f"stat -f %{letter}")
    return str(known[letter])


def tee(world, argv):
    privileged()
    chosen, paths = options(argv, "a")
    with world.model() as model:
        led = [operand(world, model, path) for path in paths]
        if "-a" not in chosen:
            for path in led:
                guard(model, path)
    return real("tee", *chosen, "--", *led)


def mktemp(world, argv):
    import tempfile

    privileged()
    chosen, templates = options(argv, "d")
    (template,) = templates
    world.inside(os.path.dirname(template))
    beginning = template.rstrip("X")
    place, name = os.path.split(beginning)
    if "-d" in chosen:
        print(tempfile.mkdtemp(prefix=name, dir=place))
    else:
        descriptor, path = tempfile.mkstemp(prefix=name, dir=place)
        os.close(descriptor)
        print(path)
    return 0


def shell(world, argv):
    """A script: its programs are this host's again."""
    return run(["/bin/sh", *argv[1:]])


def last(chosen, count):
    return [count - 1]


def every(chosen, count):
    return range(count)


def all_but_last(count):
    return range(count - 1)


PROGRAMS = {
    "mkdir": plain("pm:"),
    "cp": plain("nfpRP", reads=all_but_last, guards=lambda chosen, count: [] if "-n" in chosen else [count - 1]),
    "mv": plain("nfh", guards=every, translate=without_following),
    "ln": plain("hsfP", guards=every, translate=without_following),
    "rm": plain("fr", guards=every),
    "rmdir": plain(""),
    "chmod": plain("h", skip=1, guards=every),
    "chown": plain("h", skip=1, guards=every, translate=owners),
    "touch": plain("c"),
    "cat": plain("", reads=range),
    "head": plain("c:n:", reads=range),
    "cmp": plain("s", reads=range),
    "truncate": plain("s:", guards=every),
    "readlink": plain("fn", reads=range),
    "stat": stat,
    "tee": tee,
    "mktemp": mktemp,
    "sh": shell,
}
