//! Redis in a program that was built without the feature `redis`.

use std::sync::Arc;

use toolrack_stores::SqlStore;

use super::{features::missing, store::Shared};

pub(super) fn open(_: &str, _: &Arc<SqlStore>) -> Result<Shared, String> {
    Err(missing("redis"))
}
