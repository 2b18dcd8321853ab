"""Tries to get out of the sandbox it runs in. Each line of output is one attempt and how it went.

Arguments: `user` or `root` (who this process is), then as JSON what the host offers to be reached.
An attempt must end in one of the outcomes it names; anything else is printed as FAIL.
"""
import ctypes, errno, fcntl, json, mmap, os, resource, signal, socket, struct, subprocess, sys, time

WHO, HOST = sys.argv[1], json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def attempt(name, what, *outcomes):
    try:
        outcome = what()
    except OSError as fault:
        outcome = errno.errorcode.get(fault.errno, "timeout" if fault.errno is None else str(fault.errno))
    except (subprocess.CalledProcessError, ValueError):
        outcome = "refused"
    print("ok  " if outcome in outcomes else "FAIL", name, "->", repr(outcome))


def only_user(name, what, *outcomes):
    if WHO == "user":
        attempt(name, what, *outcomes)


def read(path, most=64):
    with open(path, "rb") as file:
        return file.read(most) or "empty"


def write(path, text="x"):
    with open(path, "w") as file:
        file.write(text)
    return "written"


def tcp(address, port):
    socket.create_connection((address, port), 2).close()
    return "connected"


def unix(address):
    socket.socket(socket.AF_UNIX).connect(address)
    return "connected"


def make_socket(*kind):
    socket.socket(*kind)
    return "made"


def status(name):
    for line in open("/proc/self/status"):
        if line.startswith(name + ":"):
            return line.split(":")[1].strip()


# Files of the host.
for path in HOST["files"]:
    attempt(f"read {path}", lambda: read(path), "ENOENT")
    attempt(f"read {path} by climbing", lambda: read("/home/agent" + "/.." * 40 + path), "ENOENT")
    attempt(f"write {path}", lambda: write(path), "ENOENT", "EROFS", "EACCES")
attempt("read /etc/shadow", lambda: read("/etc/shadow"), "ENOENT")
attempt("see the host's root", lambda: sorted(os.listdir("/")) == HOST["root"], False)
attempt("write below /usr", lambda: write("/usr/bin/x"), "EROFS")
attempt("write /etc/passwd", lambda: write("/etc/passwd"), "EROFS")
attempt("write in /", lambda: write("/x"), "EROFS")
attempt("enter by a handle", lambda: call(304, -100, ctypes.create_string_buffer(64), 0), "EPERM", "EINVAL", "EBADF")
attempt("make the disk", lambda: os.mknod("/tmp/disk", 0o600 | 0x6000, os.makedev(254, 0)), "EPERM")
attempt("make kernel memory", lambda: os.mknod("/tmp/memory", 0o600 | 0x2000, os.makedev(1, 1)), "EPERM")
attempt("link a host's file", lambda: os.link("/usr/bin/id", "/home/agent/id"), "EXDEV", "EPERM")
attempt("find devices", lambda: [d for d in ("mem", "kmsg", "kvm", "fuse", "net", "vda", "sda", "loop0", "disk") if os.path.exists("/dev/" + d)] == [], True)
attempt("find /sys", lambda: os.listdir("/sys"), "ENOENT")
attempt("inherit descriptors", lambda: [f for f in os.listdir("/proc/self/fd") if int(f) > 2 and os.path.exists("/proc/self/fd/" + f)] == [], True)
attempt("name the host by a standard descriptor", lambda: [os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in (0, 1, 2)], ["/dev/null", "pipe", "pipe"])

for place in ["/run/x", "/dev/x", "/dev/pts/x", "/var/x", "/opt/x", "/boot/x"]:
    attempt(f"write {place}", lambda: write(place), "EROFS", "EACCES", "ENOENT", "EPERM")
attempt("open a host's program for writing", lambda: os.open("/usr/bin/id", os.O_RDWR), "EROFS", "EACCES")
attempt("change a host's program's mode", lambda: os.chmod("/usr/bin/id", 0o777), "EROFS")
attempt("change a host's program's times", lambda: os.utime("/usr/bin/id"), "EROFS")
attempt("label a host's program", lambda: os.setxattr("/usr/bin/id", "user.x", b"x"), "EROFS")
attempt("flag a host's program", lambda: fcntl.ioctl(os.open("/usr/bin/id", os.O_RDONLY), 0x40086602, struct.pack("L", 0x10)), "EROFS", "EPERM", "EACCES")
attempt("replace a host's program", lambda: os.rename("/home/agent/attack.py", "/usr/bin/id"), "EXDEV", "EROFS")
attempt("climb by an open folder", lambda: os.open("../../../../../.." + HOST["files"][0], os.O_RDONLY, dir_fd=os.open("/home/agent", os.O_PATH)), "ENOENT")
attempt("climb by a link of /proc", lambda: read("/proc/self/root/.." + HOST["files"][0]), "ENOENT")
attempt("climb by /proc/self/cwd", lambda: read("/proc/self/cwd/../../.." + HOST["files"][0]), "ENOENT")


def forged_handle():
    """The root of the file system that the home lies on, by the name that the kernel gives it."""
    folder = os.open("/home/agent", os.O_RDONLY)
    handle = ctypes.create_string_buffer(struct.pack("Iiii", 8, 1, 2, 0) + bytes(128))
    opened = call(304, folder, handle, os.O_RDONLY)
    return "opened " + " ".join(os.listdir(opened))


attempt("forge a handle of the host's root", forged_handle, "EPERM", "ESTALE", "EACCES", "EINVAL", "EOPNOTSUPP")

# The host's kernel.
attempt("write core_pattern", lambda: write("/proc/sys/kernel/core_pattern", "|/tmp/x"), "EROFS", "EACCES")
attempt("write sysrq", lambda: write("/proc/sysrq-trigger", "h"), "EROFS", "EACCES", "EIO", "ENOENT")
attempt("read kcore", lambda: read("/proc/kcore"), "empty", "EPERM", "EACCES", "ENOENT")
attempt("read keys", lambda: read("/proc/keys"), "empty", "ENOENT")
attempt("load a module", lambda: call(175, 0, 0, b""), "EPERM", "ENOSYS")
attempt("kexec", lambda: call(246, 0, 0, 0, 0), "EPERM", "ENOSYS")
attempt("swap", lambda: call(167, b"/x", 0), "EPERM")
attempt("set the time", lambda: call(164, ctypes.create_string_buffer(16), 0), "EPERM")
attempt("use ports", lambda: call(172, 3), "EPERM", "ENOSYS")
attempt("read the kernel's log", lambda: call(103, 3, ctypes.create_string_buffer(100), 100), "EPERM")
attempt("go before others", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20), "EACCES", "EPERM")
attempt("go before all", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), "EPERM")
attempt("be spared when memory is short", lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1000"), "EACCES")
attempt("raise the file limit", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 30, 1 << 30)), "EPERM", "refused")
attempt("map more users", lambda: os.write(os.open("/proc/self/uid_map", os.O_WRONLY), b"0 0 1"), "EPERM", "EACCES")

for limit in ("NPROC", "FSIZE", "CORE", "SIGPENDING", "MSGQUEUE", "NICE", "RTPRIO"):
    raised = lambda: (resource.setrlimit(getattr(resource, "RLIMIT_" + limit, {"SIGPENDING": 11, "MSGQUEUE": 12, "NICE": 13, "RTPRIO": 14}.get(limit)), (1 << 40, 1 << 40)), "raised")[1]
    # Of core files it is told that they are bounded as it wishes, and they are not.
    attempt(f"raise the limit {limit}", lambda: resource.getrlimit(4)[1] if raised() and limit == "CORE" else raised(), "EPERM", "refused", 1)
attempt("raise the first process's limits", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (1 << 30, 1 << 30)), "EPERM")
attempt("see the host's timers", lambda: read("/proc/timer_list"), "empty", "ENOENT")
attempt("see the host's interrupts", lambda: read("/proc/interrupts"), "empty", "ENOENT")
attempt("see where the kernel lies", lambda: int(read("/proc/kallsyms").split()[0], 16) if os.path.exists("/proc/kallsyms") else 0, 0, "EPERM")
attempt("change the host's memory policy", lambda: write("/proc/sys/vm/overcommit_memory", "1"), "EROFS", "EACCES")
attempt("choose the next process's number", lambda: write("/proc/sys/kernel/ns_last_pid", "1"), "EROFS", "EACCES")
attempt("raise its part of shared tables", lambda: write("/proc/sys/user/max_inotify_instances", "1000"), "EROFS", "EACCES")
attempt("listen to the kernel's audit", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9).bind((0, 1)), "EPERM", "ECONNREFUSED", "EPROTONOSUPPORT")
attempt("talk to the disk's driver", lambda: [d for d in os.listdir("/dev") if d not in ("null", "zero", "full", "random", "urandom", "tty", "pts", "shm", "ptmx", "fd", "stdin", "stdout", "stderr")], [])
attempt("turn to a terminal", lambda: os.open("/dev/tty", os.O_RDWR), "ENXIO")

# The host's processes and other tenants'.
attempt("signal the service", lambda: os.kill(HOST["pid"], 0), "ESRCH")
attempt("see other processes", lambda: len([p for p in os.listdir("/proc") if p.isdigit()]) < 8, True)
attempt("read the first process's arguments", lambda: b"/" in open("/proc/1/cmdline", "rb").read().replace(b"/proc", b""), False)
attempt("see the secret in the environment", lambda: "PLAYGROUND_TEST_SECRET" in os.environ, False)
attempt("kill the first process", lambda: (os.kill(1, 9), time.sleep(0.05), os.path.exists("/proc/1"))[2], "EPERM", True)
attempt("stop the first process", lambda: (os.kill(1, 19), time.sleep(0.05), open("/proc/1/stat").read().split()[2])[2], "EPERM", "S")

attempt("reach shared memory of the host", lambda: call(29, HOST["shared memory"], 0, 0), "ENOENT")
attempt("reach semaphores of the host", lambda: call(64, HOST["shared memory"], 0, 0), "ENOENT")
attempt("reach a message queue of the host", lambda: call(240, HOST["queue"].encode(), os.O_RDONLY, 0, 0), "ENOENT")
attempt("find the service's keys", lambda: call(250, 10, -3, b"user", HOST["key"].encode(), 0), "EPERM", "ENOKEY", "EACCES", "ENOSYS")
attempt("become another program of the operator's user", lambda: subprocess.run(["/opt/faculties/suid", "-u"], capture_output=True, text=True).stdout, "1000\n", "0\n" if WHO == "root" else None, None if os.path.exists("/opt/faculties") else "ENOENT")

# The network.
for port in HOST["ports"]:
    for address in ["127.0.0.1", "::1", "localhost", "2130706433", "0x7f.1", "::ffff:127.0.0.1", "0.0.0.0"]:
        attempt(f"connect to {address}:{port}", lambda: tcp(address, port), "ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL")
    attempt(f"connect to host.docker.internal:{port}", lambda: tcp("host.docker.internal", port), "-2", "-3", "-5")
    for address in HOST["addresses"] + ["169.254.169.254", "192.0.2.2"]:
        attempt(f"connect to {address}:{port}", lambda: tcp(address, port), "ENETUNREACH", "EHOSTUNREACH")
attempt("connect to an abstract socket", lambda: unix("\0" + HOST["abstract"]), "ECONNREFUSED")
attempt("connect to a named socket", lambda: unix(HOST["socket"]), "ENOENT")
attempt("use its own loopback", lambda: (lambda s: (s.bind(("127.0.0.1", 0)), s.listen(), tcp(*s.getsockname()))[2])(socket.socket()), "connected")
attempt("see interfaces", lambda: [name for _, name in socket.if_nameindex() if name not in ("lo", "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6gre0", "teql0")], [])

# What only the locks of an ordinary command deny.
only_user("mount tmpfs", lambda: call(165, b"x", b"/home/agent", b"tmpfs", 0, 0), "EPERM")
only_user("mount proc", lambda: call(165, b"proc", b"/home/agent", b"proc", 0, 0), "EPERM")
only_user("mount cgroups", lambda: call(165, b"c", b"/home/agent", b"cgroup2", 0, 0), "EPERM")
only_user("remount /", lambda: call(165, b"none", b"/", b"", 0x20 | 0x1000, 0), "EPERM")
only_user("unmask /proc", lambda: call(166, b"/proc/kcore", 0), "EPERM")
only_user("the new mount calls", lambda: call(430, b"tmpfs", 0), "EPERM")
only_user("clone a mount", lambda: call(428, -100, b"/", 1), "EPERM")
only_user("pivot_root", lambda: call(155, b"/home/agent", b"/home/agent"), "EPERM")
only_user("chroot", lambda: os.chroot("/home/agent"), "EPERM")
only_user("unshare", lambda: call(272, 0x10000000), "EPERM")
only_user("clone into namespaces", lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0), "EPERM")
only_user("clone3", lambda: call(435, ctypes.create_string_buffer(88), 88), "ENOSYS")
only_user("setns", lambda: call(308, os.open("/proc/self/ns/net", os.O_RDONLY), 0), "EPERM")
only_user("setns to the first process", lambda: call(308, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0), "EPERM", "EACCES")
only_user("bpf", lambda: call(321, 0, 0, 0), "EPERM")
only_user("perf", lambda: call(298, 0, 0, -1, -1, 0), "EPERM")
only_user("userfaultfd", lambda: call(323, 0), "EPERM")
only_user("keyctl", lambda: call(250, 0, -3, 1), "EPERM")
only_user("add_key", lambda: call(248, b"user", b"x", b"y", 1, -2), "EPERM")
only_user("io_uring", lambda: call(425, 4, ctypes.create_string_buffer(120)), "EPERM")
only_user("a call from the future", lambda: call(900), "ENOSYS")
only_user("an x32 call", lambda: call(0x40000000 | 39), "ENOSYS")
only_user("reboot", lambda: call(169, 0xFEE1DEAD, 672274793, 0, 0), "EPERM")
only_user("rename the host", lambda: call(170, b"evil", 4), "EPERM")
only_user("type into a terminal", lambda: fcntl.ioctl(0, 0x5412, b"x"), "EPERM")
only_user("AF_PACKET", lambda: make_socket(17, socket.SOCK_RAW), "EPERM")
only_user("raw ICMP", lambda: make_socket(socket.AF_INET, socket.SOCK_RAW, 1), "EPERM")
only_user("AF_VSOCK", lambda: make_socket(40, socket.SOCK_STREAM), "EPERM")
only_user("AF_ALG", lambda: make_socket(38, socket.SOCK_SEQPACKET), "EPERM")
only_user("trace the first process", lambda: call(101, 16, 1, 0, 0), "EPERM")
only_user("read the first process's environment", lambda: read("/proc/1/environ"), "EACCES")
only_user("read the first process's maps", lambda: read("/proc/1/maps"), "EACCES")
only_user("write the first process's memory", lambda: write("/proc/1/mem"), "EACCES")
only_user("follow the first process's root", lambda: os.listdir("/proc/1/root"), "EACCES")
only_user("follow a descriptor of the first process", lambda: os.open("/proc/1/fd/3", os.O_RDONLY), "EACCES", "ENXIO")
only_user("take a descriptor of the first process", lambda: call(438, os.pidfd_open(1), 3, 0), "EPERM")
only_user("read the first process by call", lambda: call(310, 1, 0, 0, 0, 0, 0), "EPERM")
only_user("gain by a set-uid copy", lambda: subprocess.run("cp /usr/bin/id sid; chmod 4755 sid; ./sid -u", shell=True, capture_output=True, text=True).stdout, "1000\n")
only_user("su", lambda: subprocess.run(["su", "-c", "id"], check=True, stdin=subprocess.DEVNULL, capture_output=True), "refused", "ENOENT")
only_user("capabilities", lambda: [int(status(name), 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], [0, 0, 0, 0, 0])
only_user("no_new_privs and filter", lambda: [status("NoNewPrivs"), status("Seccomp")], ["1", "2"])
only_user("write a cgroup", lambda: write("/sys/fs/cgroup/cgroup.procs"), "ENOENT", "EROFS", "EACCES")
only_user("move a mount", lambda: call(429, -100, b"/tmp", -100, b"/home/agent", 0), "EPERM")
only_user("change a mount", lambda: call(442, -100, b"/", 0, ctypes.create_string_buffer(32), 32), "EPERM")
only_user("clone and change a mount", lambda: call(467, -100, b"/", 1, ctypes.create_string_buffer(32), 32), "EPERM", "ENOSYS")
only_user("pick a file system", lambda: call(433, -100, b"/", 0), "EPERM")
only_user("configure a file system", lambda: call(431, 0, 0, 0, 0, 0), "EPERM")
only_user("mount a configured file system", lambda: call(432, 0, 0, 0), "EPERM")
only_user("name a file by handle", lambda: call(303, -100, b"/", ctypes.create_string_buffer(128), ctypes.create_string_buffer(4), 0), "EPERM")
for flag, name in [(0x20000, "mount"), (0x4000000, "host name"), (0x8000000, "memory"), (0x20000000, "process"), (0x40000000, "network"), (0x2000000, "cgroup")]:
    only_user(f"clone into a {name} namespace", lambda: call(56, flag | 17, 0, 0, 0, 0), "EPERM")
    only_user(f"unshare the {name} namespace", lambda: call(272, flag), "EPERM")
only_user("unshare the time namespace", lambda: call(272, 0x80), "EPERM")
only_user("enter by a process's descriptor", lambda: call(308, os.pidfd_open(1), 0x20000000), "EPERM")
for number, name in [(313, "load a module's file"), (176, "unload a module"), (320, "kexec a file"), (168, "swap off"), (227, "set a clock"), (305, "adjust a clock"), (159, "adjust the time"), (171, "rename the domain"), (173, "use a port"), (163, "account"), (153, "hang up"), (179, "set a quota"), (443, "set a quota by descriptor"), (300, "watch everything"), (249, "request a key"), (426, "enter io_uring"), (427, "register io_uring"), (154, "change segments"), (278, "give pages to a pipe"), (256, "move memory between nodes"), (279, "move another's pages"), (440, "advise another's memory"), (312, "compare processes")]:
    only_user(name, lambda: call(number, 1, 0, 0, 0, 0, 0), "EPERM")
only_user("watch the host's files", lambda: call(300, 0, 0), "EPERM")
only_user("write the first process by call", lambda: call(311, 1, 0, 0, 0, 0, 0), "EPERM")
only_user("seize the first process", lambda: call(101, 0x4206, 1, 0, 0), "EPERM")
only_user("kill the first process by descriptor", lambda: (call(424, os.pidfd_open(1), 9, 0, 0), time.sleep(0.05), os.path.exists("/proc/1"))[2], "EPERM", True)
only_user("spare the first process no memory", lambda: write("/proc/1/oom_score_adj", "1000"), "EACCES")
only_user("list the first process's descriptors", lambda: os.listdir("/proc/1/fd"), "EACCES")
only_user("see where the first process waits", lambda: read("/proc/1/stack"), "EACCES", "EPERM", "ENOENT")
only_user("make the first process slow", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), "EPERM", "EACCES", None)
only_user("read before others", lambda: call(251, 1, 0, (1 << 13)), "EPERM")
only_user("run before others by a deadline", lambda: call(314, 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7), 0), "EPERM")
for family, name in [(15, "AF_KEY"), (21, "AF_RDS"), (29, "AF_CAN"), (30, "AF_TIPC"), (31, "AF_BLUETOOTH"), (39, "AF_NFC"), (42, "AF_QIPCRTR"), (43, "AF_SMC"), (44, "AF_XDP")]:
    only_user(name, lambda: make_socket(family, socket.SOCK_RAW), "EPERM")
only_user("raw ICMP for version six", lambda: make_socket(socket.AF_INET6, socket.SOCK_RAW, 58), "EPERM")
only_user("take the loopback interface down", lambda: fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh22x", b"lo", 0)), "EPERM")
only_user("add a route", lambda: fcntl.ioctl(socket.socket(), 0x890B, bytes(120)), "EPERM")
only_user("bind a port of the system's", lambda: socket.socket().bind(("127.0.0.1", 22)), "EACCES")


def terminal():
    return os.openpty()[0]


only_user("type into its own terminal", lambda: fcntl.ioctl(terminal(), 0x5412, b"x"), "EPERM")
only_user("type with a number that is longer", lambda: call(16, terminal(), ctypes.c_ulong(0x100005412), b"x"), "EPERM")
only_user("paste into a console", lambda: fcntl.ioctl(terminal(), 0x541C, b"\x03"), "EPERM")


def machine_code(code):
    """Runs it in a child; how the child ended."""
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code + b"\xc3")
    function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    child = os.fork()
    if child == 0:
        os._exit(0 if function() > 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


only_user("run machine code", lambda: machine_code(b"\xb8\x27\x00\x00\x00\x0f\x05"), 0)
only_user("make a call of another architecture", lambda: machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80"), -signal.SIGSYS)


def from_memory():
    """A program that no file system holds, so that no mount's flags bind it."""
    memory = os.memfd_create("x")
    os.write(memory, open("/usr/bin/cat", "rb").read())
    said = subprocess.run([f"/proc/self/fd/{memory}", "/proc/self/status"], pass_fds=[memory], capture_output=True, text=True).stdout
    return [line.split()[1] for line in said.splitlines() if line.startswith(("NoNewPrivs", "Seccomp:", "CapEff"))]


only_user("lose the locks by running from memory", from_memory, ["0000000000000000", "1", "2"])
only_user("be dumped by the host", lambda: (resource.setrlimit(resource.RLIMIT_CORE, (0, 0)), resource.getrlimit(resource.RLIMIT_CORE))[1], (1, 1))
only_user("load a filter that allows", lambda: (libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)))))), call(165, b"x", b"/tmp", b"tmpfs", 0, 0))[1], "EPERM")
if WHO == "root":
    attempt("have every capability", lambda: int(status("CapEff"), 16) & 0x1FFFFFFFF == 0x1FFFFFFFF, True)
    attempt("have no filter", lambda: status("Seccomp"), "0")
    # With every capability of its namespace it may mount, and still finds nothing of the host.
    os.makedirs("/tmp/m", exist_ok=True)
    attempt("mount tmpfs", lambda: call(165, b"x", b"/tmp/m", b"tmpfs", 0, 0), 0)
    attempt("mount the disk", lambda: call(165, b"/dev/vda", b"/tmp/m", b"ext4", 0, 0), "EPERM", "ENOENT", "ENOTBLK")
    # It may change its own view of a mount, but the host's files have owners that it has no power over.
    attempt("write below /usr after a remount", lambda: (call(165, b"none", b"/usr", b"", 0x20 | 0x1000, 0), write("/usr/bin/x"))[1], "EPERM", "EACCES", "EROFS")
    attempt("take over a host's file after a remount", lambda: os.chown("/usr/bin/id", 0, 0), "EPERM", "EACCES", "EROFS", "EINVAL")
    attempt("leave by chroot", lambda: (os.chroot("/tmp/m"), [os.chdir("..") for _ in range(40)], os.chroot("."), os.path.exists("/boot") or os.path.exists(HOST["files"][0]))[3], False)
