//! Names that nothing else has.

use std::{
    io,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;

/// A name that nobody can guess, 32 hexadecimal digits from the operating system's randomness.
///
/// # Errors
/// When the system gives none.
pub fn random_id() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// A name for a call that came without one. It only has to differ from others, also from those of other servers.
pub(crate) fn call_id() -> String {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        // Without randomness the time at which the first call came still tells servers apart.
        let first = getrandom::u64().unwrap_or_else(|_| Timestamp::now().as_microsecond().cast_unsigned());
        AtomicU64::new(first)
    });
    format!("{:016x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn k21_ids_differ_and_have_the_length_of_their_randomness() {
        let ids: HashSet<String> = (0..1000).map(|_| random_id().unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 32));
        let calls: HashSet<String> = (0..1000).map(|_| call_id()).collect();
        assert!(calls.len() == 1000 && calls.iter().all(|id| id.len() == 16));
    }
}
