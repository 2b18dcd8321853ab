"""FreeBSD's programs of datasets, mounts, jails, limits and flags, as far as a plan of jails calls them."""

import getopt
import os
import re

from . import processes
from .world import Failed, Refused, kind, privileged, through, within


def options(argv, letters):
    """The options of a program and its operands; what is not among the letters is not in the model."""
    try:
        found, operands = getopt.getopt(argv[1:], letters)
    except getopt.GetoptError as fault:
        raise Refused(str(fault)) from None
    return dict(found), operands


def exactly(operands, count):
    if len(operands) != count:
        raise Refused(f"{len(operands)} operands in place of {count}")
    return operands


# zfs


def zfs(world, argv):
    verb = argv[1] if len(argv) > 1 else ""
    if verb not in ZFS:
        raise Refused(f"zfs {verb}")
    return ZFS[verb](world, argv[1:])


def dataset(model, name):
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:/-]*", name) or "//" in name or name.endswith("/"):
        raise Failed(f"cannot open '{name}': invalid dataset name")
    if name not in model["datasets"]:
        raise Failed(f"cannot open '{name}': dataset does not exist")
    return model["datasets"][name]


def assignment(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise Refused(f"{text!r} is no property=value")
    if name not in ("refquota", "quota", "mountpoint") and not re.fullmatch(r"[a-z0-9_.-]*:[a-z0-9:_.-]+", name):
        raise Refused(f"property {name!r}")
    if name.endswith("quota") and not re.fullmatch(r"none|[0-9]+(\.[0-9]+)?[KMGT]?B?", value):
        raise Failed(f"cannot set property: bad numeric value '{value}'")
    return name, value


def zfs_list(world, argv):
    chosen, names = options(argv, "Hpro:d:t:")
    if chosen.get("-t", "filesystem") not in ("filesystem", "snapshot"):
        raise Refused(f"zfs list -t {chosen['-t']}")
    columns = chosen.get("-o", "name").split(",")
    with world.model() as model:
        if len(names) == 1 and "@" in names[0]:
            if names[0] not in model["snapshots"]:
                raise Failed(f"cannot open '{names[0]}': dataset does not exist")
            shown = names
        else:
            for name in names:
                dataset(model, name)
            shown = names or sorted(model["datasets"])
            if "-r" in chosen or "-d" in chosen:
                depth = int(chosen.get("-d", "99"))
                shown = [
                    name for name in sorted(model["datasets"])
                    if any(within(name, top) and name.count("/") - top.count("/") <= depth for top in names)
                ]
        if "-H" not in chosen:
            print("\t".join(column.upper() for column in columns))
        for name in shown:
            known = {"name": name, **model["datasets"].get(name, {})}
            print("\t".join(known.get(column, "-") for column in columns))
    return 0


def zfs_get(world, argv):
    chosen, operands = options(argv, "Hpo:s:")
    properties, name = exactly(operands, 2)
    columns = chosen.get("-o", "name,property,value,source").split(",")
    with world.model() as model:
        known = {"type": "filesystem", "name": name, "referenced": "96K", **dataset(model, name)}
    if "-p" in chosen:
        known = {key: exact(value) if key in SIZES else value for key, value in known.items()}
    if "-H" not in chosen:
        print("\t".join(column.upper() for column in columns))
    for each in properties.split(","):
        local = "local" if each in known else "-"
        row = {"name": name, "property": each, "value": known.get(each, "-"), "source": local}
        if "-s" not in chosen or local in chosen["-s"].split(","):
            print("\t".join(row[column] for column in columns))
    return 0


SIZES = ("referenced", "refquota", "quota")


def exact(size):
    """A size as `-p` shows it."""
    number, unit = re.fullmatch(r"([0-9]+)([KMGT]?)", size.replace("none", "0")).groups()
    return str(int(number) << 10 * " KMGT".index(unit or " "))


def zfs_set(world, argv):
    privileged()
    _, operands = options(argv, "")
    with world.model() as model:
        properties = dataset(model, operands[-1])
        for text in operands[:-1]:
            name, value = assignment(text)
            properties[name] = value
    return 0


def zfs_clone(world, argv):
    privileged()
    try:
        wanted, operands = getopt.getopt(argv[1:], "o:")
    except getopt.GetoptError as fault:
        raise Refused(str(fault)) from None
    snapshot, name = exactly(operands, 2)
    with world.model() as model:
        if snapshot not in model["snapshots"]:
            raise Failed(f"cannot open '{snapshot}': dataset does not exist")
        if name in model["datasets"]:
            raise Failed(f"cannot create '{name}': dataset already exists")
        parent, _, leaf = name.rpartition("/")
        if parent not in model["datasets"]:
            raise Failed(f"cannot create '{name}': parent does not exist")
        place = os.path.join(model["datasets"][parent]["mountpoint"], leaf)
        import shutil

        shutil.copytree(world.path("snapshots", snapshot), place, symlinks=True)
        model["datasets"][name] = {"mountpoint": place, "origin": snapshot, **dict(assignment(text) for _, text in wanted)}
    return 0


def zfs_destroy(world, argv):
    privileged()
    _, operands = options(argv, "")
    (name,) = exactly(operands, 1)
    with world.model() as model:
        place = dataset(model, name)["mountpoint"]
        if any(within(other, name) and other != name for other in model["datasets"]):
            raise Failed(f"cannot destroy '{name}': filesystem has children")
        if any(snapshot.startswith(f"{name}@") for snapshot in model["snapshots"]):
            raise Failed(f"cannot destroy '{name}': filesystem has dependent clones")
        mounted = any(within(row["target"], place) for row in model["mounts"])
        jailed = any(jail["path"] == place for jail in model["jails"].values())
        if mounted or jailed or processes.inside(place):
            raise Failed(f"cannot unmount '{place}': pool or dataset is busy")
        import shutil

        shutil.rmtree(place)
        model["flags"] = {path: flags for path, flags in model["flags"].items() if not within(path, place)}
        del model["datasets"][name]
    return 0


ZFS = {"list": zfs_list, "get": zfs_get, "set": zfs_set, "clone": zfs_clone, "destroy": zfs_destroy}


# mounts


def mount(world, argv):
    chosen, operands = options(argv, "pt:o:")
    if not operands:
        return mount_table(world, chosen)
    privileged()
    source, target = exactly(operands, 2)
    how = chosen.get("-o", "")
    if "-p" in chosen or chosen.get("-t") not in ("nullfs", "devfs"):
        raise Refused(f"mount of type {chosen.get('-t')}")
    if not re.fullmatch(r"ruleset=[0-9]+" if chosen["-t"] == "devfs" else r"(ro|rw|)", how):
        raise Refused(f"mount -o {how!r}")
    world.inside(target)
    with world.model() as model:
        real = os.path.realpath(target)
        if chosen["-t"] == "nullfs":
            source = os.path.realpath(world.inside(source))
            if kind(source) != kind(real):
                raise Failed(f"{target}: Not a directory" if kind(source) == "folder" else f"{target}: Is a directory")
        elif source != "devfs" or kind(real) != "folder":
            raise Failed(f"{target}: Not a directory")
        model["mounts"].append({"source": source, "target": real, "type": chosen["-t"], "how": how})
    return 0


def mount_table(world, chosen):
    if not set(chosen) <= {"-p", "-t"}:
        raise Refused("a table of mounts with options")
    with world.model() as model:
        rows = [(name, its["mountpoint"], "zfs", "") for name, its in sorted(model["datasets"].items())]
        rows += [(row["source"], row["target"], row["type"], row["how"]) for row in model["mounts"]]
        sysctls = model["sysctls"]
    if sysctls["security.jail.jailed"] == "1" and sysctls["security.jail.enforce_statfs"] != "0":
        rows = rows[:1]
    for source, target, kind_, how in rows:
        if "-t" in chosen and kind_ != chosen["-t"]:
            continue
        if "-p" in chosen:
            print(f"{octal(source)}\t{octal(target)}\t{kind_}\t{'ro' if how == 'ro' else 'rw'}\t0 0")
        else:
            words = {"zfs": "zfs, local, noatime, nfsv4acls", "devfs": "devfs", "nullfs": "nullfs, local, noatime"}
            print(f"{source} on {target} ({words[kind_]}{', read-only' if how == 'ro' else ''})")
    return 0


def octal(text):
    """As fstab(5) spells blanks."""
    return text.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")


def umount(world, argv):
    privileged()
    chosen, operands = options(argv, "f")
    (target,) = exactly(operands, 1)
    world.inside(target)
    with world.model() as model:
        rows = [row for row in model["mounts"] if row["target"] == os.path.realpath(target)]
        if not rows:
            raise Failed(f"{target}: not a file system root directory")
        if "-f" not in chosen and any(processes.inside(jail["path"]) for jail in model["jails"].values()
                                      if within(target, jail["path"])):
            raise Failed(f"unmount of {target} failed: Device busy")
        model["mounts"].reverse()
        model["mounts"].remove(rows[-1])
        model["mounts"].reverse()
    return 0


# jails

PARAMETER = re.compile(r"(name|path|host\.hostname|ip4|ip6|ip4\.addr|ip6\.addr|interface|vnet|vnet\.interface|"
                       r"children\.max|enforce_statfs|devfs_ruleset|securelevel)=(.*)|persist", re.S)


def jail(world, argv):
    privileged()
    if argv[1:2] == ["-r"]:
        (name,) = exactly(argv[2:], 1)
        with world.model() as model:
            its = running(model, name)
            processes.end_inside(its["path"])
            del model["jails"][name]
        return 0
    if argv[1:2] != ["-c"]:
        raise Refused("neither -c nor -r")
    parameters = {}
    for word in argv[2:]:
        found = PARAMETER.fullmatch(word)
        if not found:
            raise Refused(f"parameter {word!r}")
        parameters[word.partition("=")[0]] = found[2]
    name, place = parameters.get("name", ""), world.inside(parameters.get("path", ""))
    if not re.fullmatch(r"[A-Za-z0-9_-]*[A-Za-z_-][A-Za-z0-9_-]*", name):
        raise Failed(f"invalid jail name {name!r}")
    if "persist" not in parameters:
        raise Refused("a jail that ends with its command")
    for family in ("ip4", "ip6"):
        if parameters.get(family, "new") not in ("inherit", "disable", "new"):
            raise Failed(f"{family}: unknown value {parameters[family]!r}")
    with world.model() as model:
        if name in model["jails"]:
            raise Failed(f"jail {name!r} already exists")
        if not os.path.isdir(place):
            raise Failed(f"jail_set: path {place}: No such file or directory")
        model["jails"][name] = {**parameters, "path": os.path.realpath(place), "persist": True}
    return 0


def running(model, name, program="jail"):
    if name not in model["jails"]:
        raise Failed(f'jail "{name}" not found')
    return model["jails"][name]


def jls(world, argv):
    chosen, parameters = options(argv, "nqdj:")
    if not set(parameters) <= {"name", "path", "jid", "host.hostname"}:
        raise Refused(f"jls of {parameters}")
    with world.model() as model:
        names = sorted(model["jails"])
        if "-j" in chosen:
            running(model, chosen["-j"])
            names = [chosen["-j"]]
        numbers = {name: str(number) for number, name in enumerate(sorted(model["jails"]), 1)}
        rows = [{"jid": numbers[name], **model["jails"][name]} for name in names]
    if not parameters:
        print("   JID  IP Address      Hostname                      Path")
        for row in rows:
            print(f"{row['jid']:>6}  {'':15} {row.get('host.hostname', ''):29} {row['path']}")
    for row in rows if parameters else []:
        print(" ".join(f"{each}={row.get(each, '')}" if "-n" in chosen else row.get(each, "-") for each in parameters))
    return 0


def jexec(world, argv):
    privileged()
    chosen, operands = options(argv, "lU:u:d:")
    if len(operands) < 2:
        raise Refused("no command")
    if chosen.get("-U", "root") != "root" or chosen.get("-u", "root") != "root":
        raise Refused("another user than root")
    with world.model() as model:
        tree = running(model, operands[0])["path"]
        rows = [row for row in model["mounts"] if within(row["target"], tree)]
    binds = []
    for row in rows:
        source, how = ("/dev", "rw") if row["type"] == "devfs" else (row["source"], row["how"] or "rw")
        binds.append((source, row["target"][len(tree):], how))
    kept = {"TERM": "dumb", "HOME": "/root", "USER": "root", "SHELL": "/bin/sh"} if "-l" in chosen else os.environ
    words = processes.entering(tree, binds, chosen.get("-d", "/"), operands[1:])
    return processes.run(words, {**kept, "PATH": processes.GUEST_PATH})


# limits, settings, flags


def rctl(world, argv):
    privileged()
    chosen, operands = options(argv, "a:r:")
    if len(chosen) > 1 or len(operands) > 1 or (chosen and operands):
        raise Refused("more than one thing at once")
    with world.model() as model:
        if model["sysctls"]["kern.racct.enable"] != "1":
            raise Failed("RACCT/RCTL present, but disabled; enable using kern.racct.enable=1 tunable")
        if rule := chosen.get("-a"):
            if not re.fullmatch(r"jail:[^:]+:[a-z]+:(deny|log)=[0-9]+[KMG]?", rule):
                raise Refused(f"rule {rule!r}")
            if rule not in model["rules"]:
                model["rules"].append(rule)
        elif begin := chosen.get("-r"):
            if not re.fullmatch(r"jail:[^:]+(:[a-z]+)?", begin):
                raise Refused(f"rules {begin!r}")
            left = [rule for rule in model["rules"] if not (rule + ":").startswith(begin + ":")]
            if left == model["rules"]:
                raise Failed(f"failed to remove rule '{begin}': No such process")
            model["rules"] = left
        else:
            print("".join(f"{rule}\n" for rule in model["rules"] if rule.startswith(operands[0])), end="")
    return 0


def sysctl(world, argv):
    chosen, operands = options(argv, "n")
    if "-n" not in chosen:
        raise Refused("sysctl without -n")
    with world.model() as model:
        for name in operands:
            if name not in model["sysctls"]:
                raise Refused(f"oid {name!r}")
            print(model["sysctls"][name])
    return 0


def ifconfig(world, argv):
    (name,) = exactly(argv[1:], 1)
    with world.model() as model:
        if name not in model["interfaces"]:
            raise Failed(f"interface {name} does not exist")
        print(f"{name}: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500")
        for family, address in model["interfaces"][name]:
            print(f"\t{family} {address} {'netmask 0xffffff00' if family == 'inet' else 'prefixlen 64'}")
    return 0


def chflags(world, argv):
    privileged()
    _, operands = options(argv, "h")
    flags, *paths = operands
    if flags not in ("sappnd", "nosappnd", "uchg", "nouchg", "schg", "noschg"):
        raise Refused(f"flag {flags!r}")
    with world.model() as model:
        for path in paths:
            world.inside(path)
            kind(path)
            real = os.path.realpath(through(model, path))
            its = set(model["flags"].get(real, []))
            if flags.startswith("no"):
                if model["sysctls"]["kern.securelevel"] not in ("0", "-1"):
                    raise Failed(f"{path}: Operation not permitted")
                its.discard(flags[2:])
            else:
                its.add(flags)
            model["flags"][real] = sorted(its)
    return 0


PROGRAMS = {"zfs": zfs, "mount": mount, "umount": umount, "jail": jail, "jls": jls, "jexec": jexec, "rctl": rctl,
            "sysctl": sysctl, "chflags": chflags, "ifconfig": ifconfig}
