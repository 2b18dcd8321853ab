use proptest::prelude::*;

use super::{Output, Page, Room, Stream, unfinished_length};

fn bytes(page: &Page) -> Vec<u8> {
    page.chunks.iter().flat_map(|chunk| chunk.bytes.clone()).collect()
}

/// Reads everything from `cursor` in pages of `most` and returns it with the final cursor and what was dropped.
fn read(output: &mut Output, mut cursor: u64, most: usize) -> (Vec<u8>, u64, u64) {
    let (mut all, mut dropped) = (Vec::new(), 0);
    loop {
        let page = output.page(cursor, most);
        all.extend(bytes(&page));
        dropped += page.dropped;
        cursor = page.next;
        if !page.has_more {
            return (all, cursor, dropped);
        }
    }
}

#[test]
fn ten_mebibytes_through_a_ring_of_four_leave_the_last_four_and_count_the_rest() {
    let mut output = Output::new(Room::default());
    let line: Vec<u8> = (0..=99).map(|digit| b'0' + digit % 10).collect();
    let all: Vec<u8> = line.iter().copied().cycle().take(10 << 20).collect();
    for read in all.chunks(4096) {
        output.append(Stream::Stdout, read);
    }
    let (kept, end, dropped) = read(&mut output, 0, 16_000);
    assert_eq!(end, 10 << 20);
    assert_eq!(kept.len() as u64 + dropped, 10 << 20);
    assert!(kept.len() <= 4 << 20 && kept.len() > (4 << 20) - (64 << 10), "{}", kept.len());
    assert!(all.ends_with(&kept));
}

#[test]
fn one_piece_more_than_the_ring_holds_drops_the_oldest() {
    let mut output = Output::new(Room { bytes: 1 << 20, pieces: 4 });
    for (stream, text) in [(Stream::Stdout, "a"), (Stream::Stderr, "b"), (Stream::Stdout, "c"), (Stream::Stderr, "d")] {
        output.append(stream, text.as_bytes());
    }
    assert_eq!(read(&mut output, 0, 1000), (b"abcd".to_vec(), 4, 0));
    output.append(Stream::Stdout, b"e");
    assert_eq!(read(&mut output, 0, 1000), (b"bcde".to_vec(), 5, 1));
}

#[test]
fn one_byte_more_than_the_ring_holds_drops_the_oldest() {
    let mut output = Output::new(Room { bytes: 4, pieces: 100 });
    output.append(Stream::Stdout, b"ab");
    output.append(Stream::Stderr, b"cd");
    assert_eq!(read(&mut output, 0, 1000), (b"abcd".to_vec(), 4, 0));
    output.append(Stream::Stdout, b"e");
    assert_eq!(read(&mut output, 0, 1000), (b"cde".to_vec(), 5, 2));
}

#[test]
fn a_cursor_past_the_end_is_the_end() {
    let mut output = Output::new(Room::default());
    output.append(Stream::Stdout, b"abc");
    let page = output.page(1000, 1000);
    assert_eq!((page.next, page.has_more, page.dropped, page.chunks.len()), (3, false, 0, 0));
}

#[test]
fn a_page_is_the_same_again_although_more_was_written() {
    let mut output = Output::new(Room::default());
    output.append(Stream::Stdout, b"one ");
    let first = output.page(0, 1000);
    output.append(Stream::Stdout, b"two");
    let again = output.page(0, 1000);
    assert_eq!((again.chunks, again.next), (first.chunks, first.next));
    assert!(again.has_more);
    assert_eq!(bytes(&output.page(4, 1000)), b"two");
}

#[test]
fn a_character_cut_by_a_read_is_whole_in_the_page() {
    let mut output = Output::new(Room::default());
    let text = "aß€😀z".as_bytes();
    for byte in text {
        output.append(Stream::Stdout, &[*byte]);
        output.append(Stream::Stderr, &[*byte]);
    }
    output.seal();
    for chunk in output.page(0, 1000).chunks {
        assert!(std::str::from_utf8(&chunk.bytes).is_ok(), "{chunk:?}");
    }
}

#[test]
fn an_unfinished_character_appears_when_nothing_more_will_come() {
    let mut output = Output::new(Room::default());
    output.append(Stream::Stdout, b"a\xE2\x82");
    assert_eq!(bytes(&output.page(0, 1000)), b"a");
    output.seal();
    assert_eq!(bytes(&output.page(1, 1000)), b"\xE2\x82");
}

#[test]
fn only_what_can_still_become_a_character_is_held_back() {
    for (text, held) in [
        (&b""[..], 0),
        (b"a", 0),
        (b"\xC3", 1),
        (b"\xE2\x82", 2),
        (b"\xF0\x9F\x98", 3),
        (b"\xF0\x9F\x98\x80", 0),
        (b"\xE2\x28", 0),
        (b"\x80\x80\x80\x80", 0),
        (b"\xFF", 0),
        (b"\xC0", 0),
        (b"\xED\xA0", 0),
    ] {
        assert_eq!(unfinished_length(text), held, "{text:x?}");
    }
}

#[test]
fn an_extract_shows_all_that_fits_and_else_beginning_and_end() {
    let mut output = Output::new(Room::default());
    output.append(Stream::Stdout, &[b'x'; 1000]);
    let whole = output.extract(Stream::Stdout, 1000);
    assert_eq!((whole.head.len(), whole.cut, whole.tail.len()), (1000, 0, 0));
    output.append(Stream::Stdout, b"y");
    let cut = output.extract(Stream::Stdout, 1000);
    assert_eq!((cut.total, cut.head.len(), cut.cut, cut.tail.len()), (1001, 250, 1, 750));
    assert!(cut.tail.ends_with(b"xy"));
}

#[test]
fn an_extract_keeps_a_small_stream_that_the_other_has_pushed_out_of_the_ring() {
    let mut output = Output::new(Room::default());
    output.append(Stream::Stderr, b"warning");
    output.append(Stream::Stdout, &vec![b'x'; 5 << 20]);
    assert_eq!(output.extract(Stream::Stderr, 1000).head, b"warning");
}

#[test]
fn progress_tells_the_last_line() {
    let mut output = Output::new(Room::default());
    assert_eq!(output.last_line(), None);
    output.append(Stream::Stdout, b"first\nsecond\r 50%\n");
    assert_eq!(output.last_line().as_deref(), Some(" 50%"));
}

proptest! {
    #[test]
    fn text_that_is_read_page_by_page_while_it_is_written_is_the_text(
        writes in prop::collection::vec((any::<bool>(), "[aß€😀\\n]{0,30}", 1_usize..7), 0..30),
        most in 1_usize..40,
    ) {
        let mut output = Output::new(Room::default());
        let (mut cursor, mut out, mut err) = (0, String::new(), String::new());
        let (mut seen_out, mut seen_err) = (String::new(), String::new());
        let mut look = |output: &mut Output| {
            let page = output.page(cursor, most);
            cursor = page.next;
            for chunk in page.chunks {
                let seen = if chunk.stream == Stream::Stdout { &mut seen_out } else { &mut seen_err };
                seen.push_str(&String::from_utf8_lossy(&chunk.bytes));
            }
            page.has_more
        };
        for (is_error, text, cut) in &writes {
            let (stream, all) = if *is_error { (Stream::Stderr, &mut err) } else { (Stream::Stdout, &mut out) };
            all.push_str(text);
            for part in text.as_bytes().chunks(*cut) {
                output.append(stream, part);
                look(&mut output);
            }
        }
        output.seal();
        while look(&mut output) {}
        prop_assert_eq!((seen_out, seen_err), (out, err));
    }

    #[test]
    fn pages_put_together_are_the_end_of_what_was_written(
        writes in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..40),
        most in 1_usize..200,
        ring in 1_usize..2000,
        pieces in 1_usize..20,
    ) {
        let mut output = Output::new(Room { bytes: ring, pieces });
        for (is_error, write) in &writes {
            output.append(if *is_error { Stream::Stderr } else { Stream::Stdout }, write);
        }
        output.seal();
        let total: usize = writes.iter().map(|(_, write)| write.len()).sum();
        let (kept, end, dropped) = read(&mut output, 0, most);
        prop_assert_eq!(end, total as u64);
        prop_assert_eq!(kept.len() as u64 + dropped, total as u64);
        prop_assert!(kept.len() <= ring);
        let (again, ..) = read(&mut output, 0, most + 7);
        prop_assert_eq!(kept, again);
    }

    #[test]
    fn each_stream_keeps_its_order(
        writes in prop::collection::vec((any::<bool>(), "\\PC{0,20}"), 0..40),
        most in 4_usize..60,
        cuts in 1_usize..5,
    ) {
        let mut output = Output::new(Room::default());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        for (is_error, text) in &writes {
            let (stream, all) = if *is_error { (Stream::Stderr, &mut err) } else { (Stream::Stdout, &mut out) };
            all.extend_from_slice(text.as_bytes());
            for part in text.as_bytes().chunks(cuts) {
                output.append(stream, part);
            }
        }
        let (mut cursor, mut seen_out, mut seen_err) = (0, Vec::new(), Vec::new());
        loop {
            let page = output.page(cursor, most);
            for chunk in &page.chunks {
                // Valid text stays valid text in every single chunk.
                prop_assert!(std::str::from_utf8(&chunk.bytes).is_ok());
                match chunk.stream {
                    Stream::Stdout => seen_out.extend_from_slice(&chunk.bytes),
                    Stream::Stderr => seen_err.extend_from_slice(&chunk.bytes),
                }
            }
            cursor = page.next;
            if !page.has_more {
                break;
            }
        }
        prop_assert_eq!(seen_out, out);
        prop_assert_eq!(seen_err, err);
    }
}
