"""Tries to get out of the sandbox it runs in. Each line of output is one attempt and how it went.

Arguments: `user` or `root` (who this process is), then as JSON what the host offers to be reached.
An attempt must end in one of the outcomes it names; anything else is printed as FAIL.
"""
import ctypes, errno, fcntl, json, os, resource, signal, socket, struct, subprocess, sys, time

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

# The host's processes and other tenants'.
attempt("signal the service", lambda: os.kill(HOST["pid"], 0), "ESRCH")
attempt("see other processes", lambda: len([p for p in os.listdir("/proc") if p.isdigit()]) < 8, True)
attempt("read the first process's arguments", lambda: b"/" in open("/proc/1/cmdline", "rb").read().replace(b"/proc", b""), False)
attempt("see the secret in the environment", lambda: "PLAYGROUND_TEST_SECRET" in os.environ, False)
attempt("kill the first process", lambda: (os.kill(1, 9), time.sleep(0.05), os.path.exists("/proc/1"))[2], "EPERM", True)
attempt("stop the first process", lambda: (os.kill(1, 19), time.sleep(0.05), open("/proc/1/stat").read().split()[2])[2], "EPERM", "S")

# The network.
for port in HOST["ports"]:
    for address in ["127.0.0.1", "::1"]:
        attempt(f"connect to {address}:{port}", lambda: tcp(address, port), "ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL")
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
