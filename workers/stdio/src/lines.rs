//! Lines of a child's output, each with a bound.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// It passed the bound; its rest was skipped and nothing of it kept.
    TooLong,
}

/// The next line without its end; `None` at the end of the input, also when that came in the middle of a line.
pub(crate) async fn next(input: &mut (impl AsyncBufRead + Unpin), longest: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(None);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |index| index + 1);
        let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
        if line.len() + piece.len() > longest {
            is_too_long = true;
            line = Vec::new();
        } else if !is_too_long {
            line.extend_from_slice(piece);
        }
        input.consume(taken);
        if end.is_some() {
            return Ok(Some(if is_too_long { Line::TooLong } else { Line::Whole(line) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, next};

    #[tokio::test]
    async fn a_line_at_the_bound_is_whole_and_one_above_is_skipped() {
        let mut input: &[u8] = b"1234\n12345\n12\ncut";
        assert_eq!(next(&mut input, 4).await.unwrap(), Some(Line::Whole(b"1234".to_vec())));
        assert_eq!(next(&mut input, 4).await.unwrap(), Some(Line::TooLong));
        assert_eq!(next(&mut input, 4).await.unwrap(), Some(Line::Whole(b"12".to_vec())));
        assert_eq!(next(&mut input, 4).await.unwrap(), None);
    }
}
