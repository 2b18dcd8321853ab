//! The kernel's doors to loop devices and to the free room of a file system.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The number of a loop device that nobody uses at this moment.
pub(crate) fn free_loop_device(control: BorrowedFd<'_>) -> io::Result<u32> {
    #[expect(unsafe_code, reason = "loop devices have no safe wrapper")]
    // SAFETY: the request takes no argument and touches no memory of ours.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_GET_FREE) };
    u32::try_from(number).map_err(|_negative| io::Error::last_os_error())
}

/// Makes a loop device show a file. It lets go of the file by itself when nobody has the device open or mounted.
pub(crate) fn show_on_loop_device(device: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    #[repr(C)]
    struct Information {
        before: [u64; 5],
        number: u32,
        encryption: [u32; 2],
        flags: u32,
        texts: [u8; 160],
        init: [u64; 2],
    }
    #[repr(C)]
    struct Configuration {
        file: u32,
        block_size: u32,
        information: Information,
        reserved: [u64; 8],
    }
    let information =
        Information { before: [0; 5], number: 0, encryption: [0; 2], flags: AUTO_CLEAR, texts: [0; 160], init: [0; 2] };
    let file = file.as_raw_fd().unsigned_abs();
    let configuration = Configuration { file, block_size: 4096, information, reserved: [0; 8] };
    #[expect(unsafe_code, reason = "loop devices have no safe wrapper")]
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config` of 304 bytes, which is what the structure above lays out.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const configuration) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Tells what lies under a mounted file system which blocks hold nothing.
pub(crate) fn give_back_free_blocks(inside: BorrowedFd<'_>) -> io::Result<()> {
    // Start, length and the least extent that is worth it, in bytes.
    let mut range: [u64; 3] = [0, u64::MAX, LEAST_EXTENT];
    #[expect(unsafe_code, reason = "the trim request has no safe wrapper")]
    // SAFETY: FITRIM reads and writes one `struct fstrim_range` of three u64.
    let result = unsafe { libc::ioctl(inside.as_raw_fd(), TRIM, range.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const LOOP_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;

/// `LO_FLAGS_AUTOCLEAR`.
const AUTO_CLEAR: u32 = 4;

/// `_IOWR('X', 121, struct fstrim_range)`, the same on every architecture that this is built for.
const TRIM: libc::Ioctl = 0xC018_5879_u32 as libc::Ioctl;

/// Smaller holes cost the host more work than they give it room.
const LEAST_EXTENT: u64 = 64 << 10;
