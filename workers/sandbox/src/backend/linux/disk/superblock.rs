//! What an ext4 says of itself in its first bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::backend::{Share, Usage};

pub(super) struct Superblock {
    pub(super) blocks: u64,
    pub(super) block_size: u64,
    free: u64,
    /// Blocks of the file system itself.
    overhead: u64,
    inodes: u64,
    free_inodes: u64,
}

impl Superblock {
    pub(super) fn read(image: &File) -> io::Result<Self> {
        let mut bytes = [0; SIZE];
        image.read_exact_at(&mut bytes, 1024)?;
        Self::parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "there is no ext4 in it"))
    }

    fn parse(bytes: &[u8; SIZE]) -> Option<Self> {
        let word = |at: usize| {
            let word = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(u64::from(u32::from_le_bytes(word)))
        };
        let magic = bytes.get(0x38..0x3A)?;
        let is_64_bit = word(0x60)? & 0x80 != 0;
        let wide = |low: usize, high: usize| {
            let high = if is_64_bit { word(high)? } else { 0 };
            Some(high << 32 | word(low)?)
        };
        if magic != [0x53, 0xEF] {
            return None;
        }
        Some(Self {
            blocks: wide(0x4, 0x150)?,
            // A block of 64 KiB is the largest that there is.
            block_size: 1024 << word(0x18).filter(|power| *power <= 6)?,
            free: wide(0xC, 0x158)?,
            overhead: word(0x248)?,
            inodes: word(0x0)?,
            free_inodes: word(0x10)?,
        })
    }

    /// As a mount of it would count.
    pub(super) fn usage(&self) -> Usage {
        let usable = self.blocks.saturating_sub(self.overhead);
        Usage {
            disk: Share {
                used: Some(usable.saturating_sub(self.free) * self.block_size),
                bound: Some(usable * self.block_size),
            },
            inodes: Share { used: Some(self.inodes.saturating_sub(self.free_inodes)), bound: Some(self.inodes) },
            pile: 0,
        }
    }
}

const SIZE: usize = 1024;
