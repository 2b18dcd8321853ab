//! The lines of what a program is still writing.

/// Tells whole lines as they come, each once; a progress bar's, which end with a return of the carriage, too.
pub(super) struct Lines<'a> {
    told: Option<&'a (dyn Fn(&str) + Sync)>,
    /// Where the first line begins that was not told.
    from: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn to(told: Option<&'a (dyn Fn(&str) + Sync)>) -> Self {
        Self { told, from: 0 }
    }

    /// Takes all that was written so far.
    pub(super) fn hear(&mut self, all: &[u8]) {
        let Some(told) = self.told else { return };
        while let Some(rest) = all.get(self.from..)
            && let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
        {
            self.from += end + 1;
            let line = String::from_utf8_lossy(rest.get(..end).unwrap_or_default());
            if !line.trim().is_empty() {
                told(line.trim());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::Lines;

    #[test]
    fn each_line_is_told_once_when_it_is_whole() {
        let all = "one\n 2 % \r3 %\r\n\nfour\nfive";
        let heard = Mutex::new(Vec::new());
        let tell = |line: &str| heard.lock().unwrap().push(line.to_owned());
        let mut lines = Lines::to(Some(&tell));
        for end in 0..=all.len() {
            lines.hear(&all.as_bytes()[..end]);
        }
        assert_eq!(*heard.lock().unwrap(), ["one", "2 %", "3 %", "four"]);
    }
}
