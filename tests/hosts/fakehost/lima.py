"""limactl: machines with states, a tree each, and the mounts that their file says."""

import json
import os
import re
import shutil
import sys

from . import builder, processes, remote
from .world import TEMPLATE, Failed, Refused

LONGEST_SOCKET = 104
"""macOS's bound on the path of a Unix socket, which Lima holds a machine's name to."""


def limactl(world, argv):
    words = argv[1:]
    verb = words[0] if words else ""
    if verb not in VERBS:
        raise Refused(f"limactl {verb}")
    return VERBS[verb](world, words[1:])


def split(words, flags):
    """Options before the operands, as `--name value`, `--name=value` or `--flag`; `flags` says which take a value."""
    chosen, rest = {}, list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name not in flags:
            raise Refused(f"option {word!r}")
        chosen[name] = value if equals else rest.pop(0) if flags[name] else ""
    return chosen, rest


def machine(model, name):
    if name not in model["machines"]:
        raise Failed(f'instance "{name}" does not exist, run `limactl create {name}` to create a new instance')
    return model["machines"][name]


def tree_of(world, name):
    return world.path("lima", name, "root")


def trees(world, model):
    return [tree_of(world, name) for name in model["machines"]]


def list_(world, words):
    chosen, names = split(words, {"--format": True, "--json": False, "-q": False, "--quiet": False})
    form = chosen.get("--format")
    if form not in (None, "json", "{{.Name}} {{.Status}}", "{{.Name}}\t{{.Status}}"):
        raise Refused(f"--format {form!r}")
    with world.model() as model:
        for name in names:
            machine(model, name)
        for name in names or sorted(model["machines"]):
            status = model["machines"][name]["status"]
            if "--json" in chosen or form == "json":
                print(json.dumps({"name": name, "status": status, "dir": world.path("lima", name)}))
            elif form:
                print(form.replace("{{.Name}}", name).replace("{{.Status}}", status))
            elif chosen:
                print(name)
            else:
                raise Refused("a table for people")
        if not names and not model["machines"]:
            say("No instance found. Run `limactl create` to create an instance.", "warning")
    return 0


def say(message, level="info", more=""):
    """A line as limactl's own, where there is no terminal."""
    quoted = json.dumps(message, ensure_ascii=False)
    print(f'time="2026-11-30T12:00:00+01:00" level={level} msg={quoted}{more}', file=sys.stderr, flush=True)


def create(world, words):
    """A machine that is stopped, of a file."""
    chosen, operands = split(words, {"--tty": True, "--name": True})
    unattended(chosen)
    if len(operands) != 1 or "--name" not in chosen:
        raise Refused("a machine without a name, or not of one file")
    made(world, chosen["--name"], operands[0])
    image = "https://cloud-images.ubuntu.com/releases/22.04/release/ubuntu-22.04-server-cloudimg-arm64.img"
    say("Terminal is not available, proceeding without opening an editor")
    say("Attempting to download the image", more=f' arch=aarch64 digest= location="{image}"')
    say("Downloading the image (ubuntu-22.04-server-cloudimg-arm64.img)")
    for done in range(0, 640, 64):
        print(f"{done}.00 MiB / 640.00 MiB [----------] {done / 6.4:.2f}% 21.33 MiB/s", file=sys.stderr)
    say(f'Downloaded the image from "{image}"')
    say(f"Run `limactl start {chosen['--name']}` to start the instance.")
    return 0


def start(world, words):
    chosen, operands = split(words, {"--tty": True, "--name": True})
    unattended(chosen)
    if len(operands) != 1:
        raise Refused(f"{len(operands)} machines")
    name = operands[0]
    if "--name" in chosen:
        name = chosen["--name"]
        made(world, name, operands[0])
    with world.model() as model:
        its = machine(model, name)
        for mount in its["mounts"]:
            if not os.path.exists(mount["location"]):
                raise Failed(f"the location {mount['location']} of a mount does not exist")
        its["status"] = "Running"
    say(f'Using the existing instance "{name}"')
    say(f'Starting the instance "{name}" with internal VM driver "vz"')
    for number, requirement in enumerate(("ssh", "boot scripts must have finished"), 1):
        say(f'[hostagent] Waiting for the essential requirement {number} of 2: "{requirement}"')
    say(f"READY. Run `limactl shell {name}` to open the shell.")
    return 0


def unattended(chosen):
    if chosen.get("--tty") != "false":
        raise Refused("limactl that may ask")


def made(world, name, file):
    if not re.fullmatch(r"[A-Za-z0-9]+([._-][A-Za-z0-9]+)*", name):
        raise Failed(f'identifier "{name}" must match ^[A-Za-z0-9]+(?:[._-](?:[A-Za-z0-9]+))*$')
    socket = f"/Users/operator/.lima/{name}/ssh.sock.1234567890123456"
    if len(socket) >= LONGEST_SOCKET:
        raise Failed(f'instance name "{name}" too long: "{socket}" must be less than UNIX_PATH_MAX=104 characters')
    with open(world.inside(file)) as text:
        mounts = mounts_of(text.read())
    with world.model() as model:
        if name in model["machines"]:
            raise Failed(f'instance "{name}" already exists')
        shutil.copytree(world.path("snapshots", f"{TEMPLATE}@base"), tree_of(world, name), symlinks=True)
        model["machines"][name] = {"status": "Stopped", "mounts": mounts}


def mounts_of(text):
    """What a machine's file mounts: the list under `mounts:`, in YAML's block style with plain or double-quoted words."""
    for key in ("images:", "mounts:"):
        if not re.search(rf"^{key}", text, re.M):
            raise Failed(f"field `{key[:-1]}` must be set")
    block = re.search(r"^mounts:\n((?:[ -].*\n)*)", text, re.M)
    mounts = []
    for line in block[1].splitlines() if block else []:
        found = re.fullmatch(r"\s*(- )?\s*(location|mountPoint|writable):\s*(.+)", line)
        if not found:
            raise Refused(f"a mount's line {line!r}")
        if found[1]:
            mounts.append({})
        mounts[-1][found[2]] = json.loads(found[3]) if found[3][0] == '"' else found[3]
    for mount in mounts:
        if not os.path.isdir(mount["location"]) and os.path.exists(mount["location"]):
            raise Failed(f"the location {mount['location']} of a mount is not a directory")
    return mounts


def stop(world, words):
    chosen, operands = split(words, {"--force": False, "-f": False, "--tty": True})
    if len(operands) != 1:
        raise Refused(f"{len(operands)} machines")
    with world.model() as model:
        its = machine(model, operands[0])
        if its["status"] != "Running" and not chosen.keys() & {"--force", "-f"}:
            raise Failed(f'expected status "Running", got "{its["status"]}" (maybe use `limactl stop -f`?)')
        processes.end_inside(tree_of(world, operands[0]))
        its["status"] = "Stopped"
    return 0


def delete(world, words):
    chosen, operands = split(words, {"--force": False, "-f": False, "--tty": True})
    if len(operands) != 1:
        raise Refused(f"{len(operands)} machines")
    with world.model() as model:
        if operands[0] not in model["machines"]:
            # Lima warns and is content.
            return 0
        its = machine(model, operands[0])
        if its["status"] == "Running" and not chosen.keys() & {"--force", "-f"}:
            raise Failed(f'expected status "Stopped", got "{its["status"]}"')
        processes.end_inside(tree_of(world, operands[0]))
        shutil.rmtree(world.path("lima", operands[0]))
        del model["machines"][operands[0]]
    return 0


def shell(world, words):
    """As behind ssh, the guest's process outlives this one."""
    chosen, operands = split(words, {"--workdir": True, "--tty": True})
    name, command = operands[0], operands[1:]
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise Refused("a shell for a person")
    with world.model() as model:
        its = machine(model, name)
        if its["status"] != "Running":
            raise Failed(f'instance "{name}" is stopped, run `limactl start {name}` to start the instance')
        binds = [("/dev", "/dev", "rw")]
        for mount in its["mounts"]:
            place = tree_of(world, name) + mount["mountPoint"]
            os.makedirs(place, exist_ok=True)
            binds.append((mount["location"], mount["mountPoint"], "rw" if mount.get("writable") == "true" else "ro"))
    environment = {"HOME": "/root", "USER": "operator", "TERM": "dumb", "PATH": processes.GUEST_PATH}
    if builder.is_builder(name):
        for _, place, _ in builder.binds():
            os.makedirs(tree_of(world, name) + place, exist_ok=True)
        binds += builder.binds()
        environment["PATH"] = builder.path(processes.GUEST_PATH)
    words = processes.entering(tree_of(world, name), binds, chosen.get("--workdir", "/"), command)
    code = remote.relay(words, environment)
    if builder.is_builder(name) and code == builder.REFUSED:
        raise Refused(f"a program of the builder, by {command}")
    return code


VERBS = {"list": list_, "create": create, "start": start, "stop": stop, "delete": delete, "shell": shell}

PROGRAMS = {"limactl": limactl}
