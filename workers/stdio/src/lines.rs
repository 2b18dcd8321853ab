//! Lines of a child's output, each with a bound.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

use crate::skim::{Skim, Skimmed};

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// It passed the bound; its rest was skipped and nothing of it kept but what it was.
    TooLong(Skimmed),
}

/// The next line without its end; `None` at the end of the input, also when that came in the middle of a line.
pub(crate) async fn next(input: &mut (impl AsyncBufRead + Unpin), longest: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut skim: Option<Skim> = None;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(None);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |index| index + 1);
        let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
        match &mut skim {
            Some(skim) => skim.feed(piece),
            None if line.len() + piece.len() > longest => {
                let mut begun = Skim::default();
                begun.feed(&std::mem::take(&mut line));
                begun.feed(piece);
                skim = Some(begun);
            }
            None => line.extend_from_slice(piece),
        }
        input.consume(taken);
        if end.is_some() {
            return Ok(Some(skim.map_or(Line::Whole(line), |skim| Line::TooLong(skim.end()))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, next};
    use crate::skim::Skimmed;

    #[tokio::test]
    async fn a_line_at_the_bound_is_whole_and_one_above_is_skipped() {
        let mut input: &[u8] = b"1234\n12345\n12\ncut";
        assert_eq!(next(&mut input, 4).await.unwrap(), Some(Line::Whole(b"1234".to_vec())));
        assert_eq!(next(&mut input, 4).await.unwrap(), Some(Line::TooLong(Skimmed::Other)));
        assert_eq!(next(&mut input, 4).await.unwrap(), Some(Line::Whole(b"12".to_vec())));
        assert_eq!(next(&mut input, 4).await.unwrap(), None);
    }
}
