//! What every request meets: its body, its names, the error that it is answered with.

pub(super) mod api_error;
pub(super) mod body;
pub(super) mod harmless;
pub(super) mod key;
pub(super) mod name;
pub(super) mod origins;
pub(super) mod pages;
pub(super) mod public_url;
pub(super) mod query;
pub(super) mod store_log;
pub(super) mod stored;
pub(super) mod timeouts;
pub(super) mod via;
