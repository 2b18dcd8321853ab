//! A number of bytes as people write it: `4GiB`, `512 MiB`, or plain.

use std::fmt;
use std::str::FromStr;

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

/// A text that is no number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size; write it as 4GiB, 512MiB or 1048576")]
pub struct InvalidSize(String);

impl Size {
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<ByteSize>().map(|size| Self(size.as_u64())).map_err(|_fault| InvalidSize(text.to_owned()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", ByteSize(self.0).display().iec())
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // Exact, whatever a text would round it to.
        to.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written)
    }
}

/// A number, or a text.
struct Written;

impl de::Visitor<'_> for Written {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 4GiB, 512MiB or 1048576")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(bytes))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn a_size_reads_as_it_is_shown() {
        for (text, bytes) in [("1048576", 1 << 20), ("4GiB", 4 << 30), ("512 MiB", 512 << 20), ("0", 0)] {
            let size: Size = text.parse().unwrap();
            assert_eq!(size.bytes(), bytes, "{text}");
            assert_eq!(size.to_string().parse::<Size>().unwrap(), size);
        }
        assert!("".parse::<Size>().is_err() && "many".parse::<Size>().is_err() && "-1".parse::<Size>().is_err());
    }
}
