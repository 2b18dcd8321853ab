//! Names that cannot be guessed.

/// 128 bits from the kernel.
pub(crate) fn bits() -> u128 {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .expect("getrandom(2): up to 256 bytes without flags are neither refused nor interrupted");
    u128::from_ne_bytes(bytes)
}
