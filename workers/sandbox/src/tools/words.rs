//! Times and sizes as a sentence says them.

use std::time::Duration;

/// `60 minutes`, or seconds where minutes would not be exact.
pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        60 => "1 minute".to_owned(),
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} minutes", seconds / 60),
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

/// `4 MiB`, or a smaller unit where that would not be exact.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= MIB && bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        bytes if bytes >= KIB && bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        bytes => format!("{bytes} bytes"),
    }
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{size, time};

    #[test]
    fn times_and_sizes_are_exact_in_the_largest_unit_that_fits() {
        for (seconds, said) in [(0, "0 seconds"), (1, "1 second"), (59, "59 seconds"), (60, "1 minute")] {
            assert_eq!(time(Duration::from_secs(seconds)), said);
        }
        for (seconds, said) in [(90, "90 seconds"), (3600, "60 minutes"), (3601, "3601 seconds")] {
            assert_eq!(time(Duration::from_secs(seconds)), said);
        }
        for (bytes, said) in [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (4 << 20, "4 MiB")] {
            assert_eq!(size(bytes), said);
        }
    }
}
