//! The table of mounts.

use super::{text, unclear};
use crate::backend::host::Output;
use crate::backend::jail::fault::JailFault;
use crate::backend::jail::text::Dataset;

/// What `mount` prints: `SOURCE on TARGET (TYPE, …)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend::jail) struct Mounts(Vec<Row>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// `SOURCE on TARGET`, which is not taken apart: either may hold the word between them.
    pair: String,
    kind: String,
    is_read_only: bool,
}

impl Mounts {
    pub(in crate::backend::jail) fn read(question: &str, output: &Output) -> Result<Self, JailFault> {
        let row = |line: &str| {
            let (pair, rest) = line.rsplit_once(" (")?;
            let mut words = rest.strip_suffix(')')?.split(", ");
            let kind = words.next()?.to_owned();
            let is_read_only = words.any(|word| word == "read-only");
            pair.contains(" on /").then(|| Row { pair: pair.to_owned(), kind, is_read_only })
        };
        let rows: Option<Vec<_>> = text(question, output)?.lines().map(row).collect();
        match rows {
            // There is no host without a root.
            Some(rows) if !rows.is_empty() => Ok(Self(rows)),
            Some(_) | None => Err(unclear(question, output)),
        }
    }

    /// Where a dataset is mounted, in the table's own spelling, if it is at one place.
    pub(in crate::backend::jail) fn root_of(&self, dataset: &Dataset) -> Option<String> {
        let head = format!("{dataset} on ");
        let mut roots = self.0.iter().filter(|row| row.kind == "zfs").filter_map(|row| row.pair.strip_prefix(&head));
        let root = roots.next()?;
        (roots.next().is_none() && root.starts_with('/')).then(|| root.to_owned())
    }

    /// The dataset that is mounted at a place.
    pub(in crate::backend::jail) fn dataset_at(&self, target: &str) -> Option<Dataset> {
        let tail = format!(" on {target}");
        let mut found = self.0.iter().filter(|row| row.kind == "zfs").filter_map(|row| row.pair.strip_suffix(&tail));
        found.next()?.parse().ok()
    }

    /// How many mounts lie upon a place.
    pub(in crate::backend::jail) fn upon(&self, target: &str) -> usize {
        let tail = format!(" on {target}");
        self.0.iter().filter(|row| row.pair.ends_with(&tail)).count()
    }

    /// Whether the one mount upon a place is of this source and kind, and as much for reading alone as it has to be.
    pub(in crate::backend::jail) fn is_exactly(
        &self,
        source: &str,
        target: &str,
        kind: &str,
        is_read_only: bool,
    ) -> bool {
        let wanted = Row { pair: format!("{source} on {target}"), kind: kind.to_owned(), is_read_only };
        self.upon(target) == 1 && self.0.contains(&wanted)
    }

    /// What is upon a place, for people.
    pub(in crate::backend::jail) fn describe(&self, target: &str) -> String {
        let tail = format!(" on {target}");
        let rows = self.0.iter().filter(|row| row.pair.ends_with(&tail));
        let how = |row: &Row| if row.is_read_only { ", read-only" } else { "" };
        let words: Vec<_> = rows.map(|row| format!("{} ({}{})", row.pair, row.kind, how(row))).collect();
        if words.is_empty() { "not mounted".to_owned() } else { words.join(", ") }
    }

    /// What is mounted anywhere below a folder, as `SOURCE on TARGET`.
    pub(in crate::backend::jail) fn below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let middle = format!(" on {folder}/");
        self.0.iter().map(|row| row.pair.as_str()).filter(move |pair| pair.contains(&middle))
    }
}

#[cfg(test)]
mod tests {
    use super::Mounts;
    use crate::backend::host::Output;

    const TABLE: &str = "\
zroot/ROOT/default on / (zfs, local, noatime, nfsv4acls)
devfs on /dev (devfs)
a/box on /a/box (zfs, local)
/piles/box/self.pile on /a/box/pile/self.pile (nullfs, local)
";

    fn read(text: &str) -> Option<Mounts> {
        Mounts::read("q", &Output::good(text)).ok()
    }

    #[test]
    fn a_mount_is_right_when_it_is_the_only_one_upon_its_place_and_all_of_it_fits() {
        let is = |table: &str, source: &str, kind: &str, is_read_only: bool| {
            read(table).unwrap().is_exactly(source, "/a/box/pile/self.pile", kind, is_read_only)
        };
        assert!(is(TABLE, "/piles/box/self.pile", "nullfs", false));
        assert!(!is(TABLE, "/piles/box/self.pile", "nullfs", true));
        assert!(!is(TABLE, "/piles/box/self.pile", "zfs", false));
        assert!(!is(TABLE, "/piles/other", "nullfs", false));
        let twice = format!("{TABLE}/other on /a/box/pile/self.pile (nullfs, local)\n");
        assert!(!is(&twice, "/piles/box/self.pile", "nullfs", false));
        let read_only = TABLE.replace("(nullfs, local)", "(nullfs, local, read-only)");
        assert!(is(&read_only, "/piles/box/self.pile", "nullfs", true));
        assert!(!is(&read_only, "/piles/box/self.pile", "nullfs", false));
    }

    #[test]
    fn the_tables_own_spelling_of_a_root_is_found_by_the_dataset() {
        let mounts = read("a/box on /jails/parent/a/box (zfs, local)\na/boxes on /a/boxes (zfs, local)\n").unwrap();
        assert_eq!(mounts.root_of(&"a/box".parse().unwrap()).as_deref(), Some("/jails/parent/a/box"));
        assert_eq!(mounts.root_of(&"a/none".parse().unwrap()), None);
        assert_eq!(mounts.dataset_at("/a/boxes").map(String::from).as_deref(), Some("a/boxes"));
    }

    #[test]
    fn what_lies_below_a_folder_is_seen_also_where_a_source_is_oddly_called() {
        let mounts = read("/x on /a/box/y on /a/box/z (nullfs)\n/q on /a/boxes/q (nullfs)\n").unwrap();
        assert_eq!(mounts.below("/a/box").collect::<Vec<_>>(), ["/x on /a/box/y on /a/box/z"]);
    }

    #[test]
    fn a_table_with_a_row_that_is_not_understood_is_no_answer() {
        for text in ["", "a/box on /a/box\n", "a/box /a/box (zfs)\n", "\n", "a on b (zfs)\n"] {
            assert!(read(text).is_none(), "{text}");
        }
        assert!(Mounts::read("q", &Output::bad(1, "no")).is_err());
    }
}
