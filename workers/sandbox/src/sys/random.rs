//! What the kernel's own generator gives, on every system alike.

/// So many bytes that nobody can guess; at most 256.
pub(crate) fn bytes<const COUNT: usize>() -> [u8; COUNT] {
    const { assert!(COUNT <= 256, "more than getentropy gives at once") };
    let mut bytes = [0; COUNT];
    #[expect(unsafe_code, reason = "rustix has getrandom(2) of Linux alone, and this is everywhere")]
    // SAFETY: the call writes that many bytes to an array of that many.
    let result = unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), COUNT) };
    assert!(result == 0, "getentropy(3): up to 256 bytes are neither refused nor interrupted");
    bytes
}
