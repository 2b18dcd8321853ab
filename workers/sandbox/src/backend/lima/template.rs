//! What a machine is made from, as Lima reads it: values that a YAML writer writes, so that no path and no label can be
//! anything but text.

use std::io;
use std::path::Path;

use kit::Tenant;
use serde::Serialize;
use serde_saphyr::{DoubleQuoted, LitString, ser_options, to_string_with_options};

use super::Settings;
use super::kept::Pile;
use super::made::{CPUS, DISK, MEMORY, Made};
use super::mark::Mark;
use crate::bundle::recipe;
use crate::settings::Size;

/// What a template is made of.
pub(super) struct Facts<'a> {
    pub(super) settings: &'a Settings,
    pub(super) made: &'a Made,
    pub(super) pile: Option<&'a Pile>,
    pub(super) tenant: &'a Tenant,
    /// The operating system of this host.
    pub(super) host: &'a str,
    pub(super) mark: &'a Mark,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Template<'a> {
    /// One of the operator's own, which what follows goes before.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vm_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mount_type: Option<&'static str>,
    images: Vec<Image>,
    cpus: u32,
    memory: String,
    disk: String,
    mounts: Vec<Mount>,
    containerd: Containerd,
    provision: Vec<Provision>,
    user: User<'a>,
}

#[derive(Serialize)]
struct Image {
    location: &'static str,
    arch: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    location: DoubleQuoted<String>,
    mount_point: &'static str,
    writable: bool,
}

#[derive(Serialize)]
struct Containerd {
    system: bool,
    user: bool,
}

#[derive(Serialize)]
struct Provision {
    mode: &'static str,
    script: LitString,
}

#[derive(Serialize)]
struct User<'a> {
    name: &'a str,
}

/// # Errors
/// When a path is no text.
pub(super) fn render(facts: &Facts<'_>) -> io::Result<String> {
    let Facts { settings, made, pile, host, .. } = facts;
    let mac = (*host == "macos").then_some(());
    let mut mounts = Vec::new();
    if let Some(pile) = pile {
        mounts.push(Mount { location: text(&pile.folder())?, mount_point: "/pile", writable: true });
        if let Some(key) = pile.view.as_ref().and_then(|view| view.key.clone()) {
            mounts.push(Mount { location: text(&key)?, mount_point: "/identity", writable: false });
        }
    }
    if let Some(faculties) = &made.faculties {
        mounts.push(Mount { location: text(faculties)?, mount_point: "/opt/faculties", writable: false });
    }
    let template = Template {
        base: settings.template.as_deref(),
        vm_type: mac.map(|()| "vz"),
        mount_type: mac.map(|()| "virtiofs"),
        images: if settings.template.is_some() { Vec::new() } else { images() },
        cpus: made.cpus,
        memory: mebibytes(made.memory),
        disk: mebibytes(made.disk),
        mounts,
        containerd: Containerd { system: false, user: false },
        provision: vec![Provision { mode: "system", script: LitString(script(facts, made.faculties.is_some())) }],
        user: User { name: &settings.user },
    };
    written(&template)
}

/// The template of the machine in which faculties are built.
///
/// # Errors
/// When a path is no text.
pub(super) fn builder(user: &str, sources: &Path, scratch: &Path, host: &str) -> io::Result<String> {
    let mac = (host == "macos").then_some(());
    let mounts = vec![
        Mount { location: text(sources)?, mount_point: recipe::SOURCES, writable: false },
        Mount { location: text(scratch)?, mount_point: recipe::SCRATCH, writable: true },
    ];
    written(&Template {
        base: None,
        vm_type: mac.map(|()| "vz"),
        mount_type: mac.map(|()| "virtiofs"),
        images: images(),
        cpus: CPUS,
        memory: mebibytes(MEMORY),
        disk: mebibytes(DISK),
        mounts,
        containerd: Containerd { system: false, user: false },
        provision: Vec::new(),
        user: User { name: user },
    })
}

fn mebibytes(size: Size) -> String {
    format!("{}MiB", size.bytes() >> 20)
}

fn written(template: &Template<'_>) -> io::Result<String> {
    // One line a value, so that people find their way.
    let options = ser_options! { prefer_block_scalars: false };
    to_string_with_options(template, options).map_err(io::Error::other)
}

/// A path, which has to be text and is always quoted.
fn text(path: &Path) -> io::Result<DoubleQuoted<String>> {
    let not_text = || io::Error::other(format!("{} is no text", path.display()));
    path.to_str().map(|path| DoubleQuoted(path.to_owned())).ok_or_else(not_text)
}

/// What root of the machine does at its first start, and at every later one.
fn script(facts: &Facts<'_>, faculties: bool) -> String {
    let mut profile = Vec::new();
    if faculties {
        profile.push("export PATH=/opt/faculties:\"$PATH\"".to_owned());
    }
    let mut pile = "";
    if let Some(found) = facts.pile {
        profile.push("export PILE=/pile/self.pile".to_owned());
        if found.view.as_ref().is_some_and(|view| view.key.is_some()) {
            profile.push("export TRIBLESPACE_KEY=/identity/self.key".to_owned());
        }
        profile.push(format!("export PERSONA='{}'", facts.tenant.as_str().replace('\'', r"'\''")));
        // Only some file systems heed it, and root of the machine can take it back.
        pile = "ln -sfn /pile/self.pile /self.pile\nchattr +a /pile/self.pile 2>/dev/null || true\n";
    }
    let lines: String = profile.iter().map(|line| format!(" '{}'", line.replace('\'', r"'\''"))).collect();
    let profile = if lines.is_empty() {
        String::new()
    } else {
        format!("printf '%s\\n'{lines} > /etc/profile.d/playground-session.sh\n")
    };
    let mark = format!("# {}: by this the playground knows the machine for its own.\n", facts.mark);
    format!("#!/bin/sh\n{mark}set -eu\nexport DEBIAN_FRONTEND=noninteractive\n{PACKAGES}{pile}{profile}")
}

fn images() -> Vec<Image> {
    vec![
        Image {
            location: "https://cloud-images.ubuntu.com/releases/22.04/release/ubuntu-22.04-server-cloudimg-amd64.img",
            arch: "x86_64",
        },
        Image {
            location: "https://cloud-images.ubuntu.com/releases/22.04/release/ubuntu-22.04-server-cloudimg-arm64.img",
            arch: "aarch64",
        },
    ]
}

/// What faculties and the script need. A machine that has them asks nobody again.
const PACKAGES: &str = "if ! [ -e /var/lib/playground-provisioned ]; then\n  apt-get update\n  apt-get install -y ca-certificates curl \
                        e2fsprogs libasound2\n  touch /var/lib/playground-provisioned\nfi\n";

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use kit::Tenant;

    use super::{Facts, Made, Mark, render};
    use crate::backend::host::Surroundings;
    use crate::backend::lima::Settings;
    use crate::backend::lima::kept::{Pile, View};
    use crate::backend::lima::name::Name;
    use crate::settings::{Size, TenantSettings};

    fn rendered(change: impl FnOnce(&mut Settings, &mut TenantSettings), pile: Option<Pile>, label: &str) -> String {
        let mut settings = Settings::at("/var/tmp/sbx".into(), "me".to_owned(), Surroundings::default());
        let mut own = TenantSettings::default();
        change(&mut settings, &mut own);
        let tenant = Tenant::parse(label).unwrap();
        let made = Made::of(&own, &TenantSettings::default(), settings.faculties.as_ref());
        let facts = Facts {
            settings: &settings,
            made: &made,
            pile: pile.as_ref(),
            tenant: &tenant,
            host: if label == "mac" { "macos" } else { "linux" },
            mark: &mark(),
        };
        render(&facts).unwrap()
    }

    fn mark() -> Mark {
        Mark::of(Path::new("/s"), &Name::of("p", &Tenant::parse("alice").unwrap()))
    }

    fn viewed(folder: &str) -> Pile {
        let view = View { pile: PathBuf::from(folder).join("pile"), key: Some(PathBuf::from(folder).join("key")) };
        Pile { file: "/far/self.pile".into(), key: Some("/far/self.key".into()), view: Some(view) }
    }

    #[test]
    fn a_machine_without_anything_has_the_originals_size() {
        let text = rendered(|_, _| {}, None, "alice");
        for line in ["cpus: 4", "memory: 8192MiB", "disk: 30720MiB", "mounts: []", "images:"] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        for word in ["vmType", "base:", "PILE", "profile.d"] {
            assert!(!text.contains(word), "{word}\n{text}");
        }
    }

    #[test]
    fn each_part_appears_where_it_was_asked_for() {
        let text = rendered(
            |settings, own| {
                settings.template = Some("/etc/lima/own.yaml".into());
                own.memory = Some(Size::new(1 << 30));
                own.cpu_percent = Some(150);
                own.faculties = Some("/srv/faculties".into());
            },
            Some(viewed("/var/tmp/view")),
            "mac",
        );
        for line in [
            "base: /etc/lima/own.yaml",
            "vmType: vz",
            "mountType: virtiofs",
            "memory: 1024MiB",
            "cpus: 2",
            "images: []",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let order =
            ["/var/tmp/view/pile", "/pile", "/var/tmp/view/key", "/identity", "/srv/faculties", "/opt/faculties"];
        let mut rest = &text[text.find("mounts:").unwrap()..];
        for place in order {
            rest = &rest[rest.find(place).unwrap_or_else(|| panic!("{place}\n{text}"))..];
        }
        assert!(text.contains("TRIBLESPACE_KEY=/identity/self.key") && text.contains("PERSONA="), "{text}");
    }

    #[test]
    fn nothing_in_a_path_or_a_label_breaks_out_of_its_place() {
        let odd = "/a b/'c'/\"d\": [e]\n- location: /etc\n#&*!|>%@`{}";
        let plain = rendered(|_, _| {}, Some(viewed("/view")), "alice");
        let text = rendered(|_, _| {}, Some(viewed(odd)), "it's\": #- {x}");
        let keys = |text: &str| -> Vec<String> {
            let top = text.lines().filter(|line| !line.starts_with([' ', '-']) && line.contains(':'));
            top.map(|line| line.split(':').next().unwrap().to_owned()).collect()
        };
        assert_eq!(keys(&text), keys(&plain), "{text}");
        // As JSON, which double-quoted YAML is.
        let found =
            text.lines().find(|line| line.trim_start_matches([' ', '-']).starts_with("location: \"/a")).unwrap();
        let value: String = serde_json::from_str(found.split_once("location: ").unwrap().1).unwrap();
        assert_eq!(value, format!("{odd}/pile"));
    }

    #[test]
    fn a_label_is_one_word_of_the_machines_profile() {
        let folder = tempfile::tempdir().unwrap();
        let label = "it's $(touch x) `y` \"z\"";
        let text = super::script(
            &Facts {
                settings: &Settings::at("/r".into(), "me".to_owned(), Surroundings::default()),
                made: &Made::of(&TenantSettings::default(), &TenantSettings::default(), None),
                pile: Some(&viewed("/view")),
                tenant: &Tenant::parse(label).unwrap(),
                host: "linux",
                mark: &mark(),
            },
            true,
        );
        let profile = text.lines().find(|line| line.contains("profile.d")).unwrap();
        let here = profile.replace("/etc/profile.d", folder.path().to_str().unwrap());
        let script =
            format!("cd {0}; {here}\n. {0}/playground-session.sh; printf %s \"$PERSONA\"", folder.path().display());
        #[expect(clippy::disallowed_methods, reason = "the test asks a real shell")]
        let told = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(told.stdout).unwrap(), label);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
