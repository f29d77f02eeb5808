//! Through which servers like this one a request has come, so that those that ask each other in a circle find out.
//!
//! Each of them adds its id to a header of what it asks its model servers. It refuses a request that has its own id, or too many. A reply
//! to such a request has the id of whoever answers, which tells that there is a Toolrack and no model server.

use std::sync::Arc;

use futures_util::future::Either;
use toolrack_remote::module::MAX_HOPS;

/// The header of requests and replies.
pub(crate) const VIA: &str = "x-toolrack-via";
/// The longest value of the header, in bytes: so many servers have ids of 16 digits.
const LONGEST: usize = 32 * MAX_HOPS as usize;

tokio::task_local! {
    /// The ids of the servers that the request has come through which is being answered.
    static THROUGH: Arc<str>;
}

/// A new id.
pub(super) fn new_id() -> Arc<str> {
    format!("{:016x}", fastrand::u64(..)).into()
}

/// The servers that a header names, for a server of this id.
///
/// # Errors
/// When the server is among them, or they are too many.
pub(crate) fn through(header: &[u8], own: &str) -> Result<Arc<str>, String> {
    let names = std::str::from_utf8(header).ok().filter(|names| names.len() <= LONGEST).unwrap_or_default();
    let mut count = 0;
    for name in names.split(',') {
        if name.trim() == own {
            return Err("the request has come through this server before: its model server asks this server; set `upstream` to a model server".to_owned());
        }
        count += 1;
    }
    // What cannot be read has come far enough.
    if names.is_empty() || count >= usize::from(MAX_HOPS) {
        return Err(format!(
            "the request has come through too many servers, and {MAX_HOPS} at most are gone through; do they ask each other?"
        ));
    }
    Ok(names.into())
}

/// Answers a request that has come through these servers.
pub(crate) async fn answering<T>(through: Arc<str>, answer: impl Future<Output = T>) -> T {
    THROUGH.scope(through, answer).await
}

/// The same work for another task, which belongs to the request that is being answered here.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    match THROUGH.try_with(Arc::clone) {
        Ok(through) => Either::Left(THROUGH.scope(through, work)),
        Err(_) => Either::Right(work),
    }
}

/// The header of what a server of this id asks.
pub(super) fn header_of(own: &str) -> String {
    THROUGH.try_with(|through| format!("{through}, {own}")).unwrap_or_else(|_| own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b14_each_server_on_the_way_adds_its_id() {
        assert_eq!(header_of("a"), "a");
        let through = through(b"a, b", "c").unwrap();
        let asked = answering(through, async { tokio::spawn(carried(async { header_of("c") })).await });
        assert_eq!(asked.await.unwrap(), "a, b, c");
    }

    #[test]
    fn b14_a_request_that_comes_again_or_from_too_far_is_refused() {
        assert!(through(b"a, b", "b").unwrap_err().contains("before"));
        for far in [&b"a, b, c, d"[..], b"", b"\xff", &[b'a'; 1000]] {
            assert!(through(far, "e").unwrap_err().contains("too many"), "{far:?}");
        }
        assert!(through(b"a, b, c", "d").is_ok());
    }
}
