//! Names that cannot be guessed.

/// 128 bits from the kernel.
pub(crate) fn bits() -> u128 {
    u128::from_ne_bytes(crate::sys::random::bytes())
}
