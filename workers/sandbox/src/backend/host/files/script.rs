//! The scripts. Their arguments are: the home folder (`~` is the one that the shell knows), the folder to begin in, the path, a number of bytes.
//!
//! They are for the `/bin/sh` of FreeBSD and of Linux, and name programs by places that both have.

/// Goes where the path begins, and finds out what lies at its end, in `f`.
pub(super) const BEGIN: &str = r#"LC_ALL=C; export LC_ALL; CDPATH=; umask 022
case $1 in "~") cd ;; *) cd -- "$1" ;; esac 2>/dev/null; cd -- "$2" 2>/dev/null || exit 91
case $3 in /*) f=$3 ;; *) f=./$3 ;; esac
refuse() {
  if [ -d "$f" ]; then exit 92; fi
  kind=other
  [ -p "$f" ] && kind=pipe
  [ -S "$f" ] && kind=socket
  [ -c "$f" ] && kind=character
  [ -b "$f" ] && kind=block
  echo "$kind" >&2; exit 93
}
size() { n=$(/usr/bin/wc -c < "$1") && echo $((n)); }
settle() { if [ -x /usr/bin/fsync ]; then /usr/bin/fsync "$1"; else /bin/sync "$1"; fi; }
"#;

pub(super) const READ: &str = r#"if [ -e "$f" ] && ! [ -f "$f" ]; then refuse; fi
n=$(size "$f") || exit 1
if [ "$n" -gt "$4" ]; then echo "$4 $n" >&2; exit 94; fi
exec /usr/bin/head -c "$(($4 + 1))" < "$f"
"#;

/// The neighbour has a name of its own and the file's own mode. What was not written whole is removed again.
pub(super) const WRITE: &str = r#"case $f in */) f=${f%/} ; [ -e "$f" ] || { echo "Is a directory" >&2; exit 92; } ;; esac
if [ -L "$f" ]; then
  f=$(/usr/bin/readlink -f -- "$f" && echo x) && f=${f%??} && [ -n "$f" ] || { echo "No such file" >&2; exit 1; }
fi
age=new; mode=
if [ -e "$f" ]; then
  [ -f "$f" ] || refuse
  if ! [ -w "$f" ]; then echo "Permission denied" >&2; exit 1; fi
  age=old
  mode=$(/usr/bin/stat -c %a -- "$f" 2>/dev/null || /usr/bin/stat -f %Lp -- "$f") || exit 1
fi
case $f in */*) d=${f%/*}/ ;; *) d=./ ;; esac
t=$(umask 077 && /usr/bin/mktemp "${d}.playground.XXXXXXXX") || exit 1
trap '/bin/rm -f -- "$t"' EXIT
trap 'exit 1' HUP INT TERM
/bin/cat > "$t" || exit 1
n=$(size "$t") || exit 1
if [ "$n" -ne "$4" ]; then echo "only $n of $4 bytes have arrived" >&2; exit 1; fi
/bin/chmod "${mode:-644}" "$t" && settle "$t" && /bin/mv -f -- "$t" "$f" || exit 1
echo "$age $n"
"#;

pub(super) const APPEND: &str = r#"age=new; before=0
if [ -e "$f" ]; then
  [ -f "$f" ] || refuse
  age=old
  before=$(size "$f") || before=0
fi
/bin/cat >> "$f"; done=$?
after=$(size "$f") || exit 1
settle "$f" || done=1
if [ "$done" -ne 0 ] && [ "$((after - before))" -lt "$4" ]; then echo "$4 $((after - before))" >&2; exit 95; fi
echo "$age $after"
"#;

pub(super) const PARENTS: &str = r#"case $f in */*) d=${f%/*} ;; *) exit 0 ;; esac
exec /bin/mkdir -p -- "${d:-/}"
"#;

pub(super) const NO_FOLDER: i32 = 91;
pub(super) const DIRECTORY: i32 = 92;
pub(super) const NOT_REGULAR: i32 = 93;
pub(super) const TOO_LARGE: i32 = 94;
pub(super) const PARTIAL: i32 = 95;
