//! Keeps the values of tools in memory.

use std::collections::BTreeMap;

use super::{Expected, StateError, StateLimits, StateSpace, state_size};

#[derive(Debug, Default)]
pub(in crate::store) struct MemoryState(BTreeMap<StateSpace, BTreeMap<String, String>>);

fn size(values: &BTreeMap<String, String>) -> u64 {
    values.iter().map(|(key, value)| state_size(key, value)).sum()
}

impl MemoryState {
    pub(in crate::store) fn get(&self, space: &StateSpace, key: &str) -> Option<String> {
        self.0.get(space)?.get(key).cloned()
    }

    pub(in crate::store) fn put(
        &mut self,
        space: &StateSpace,
        key: &str,
        value: Option<&str>,
        expected: Expected<'_>,
        limits: &StateLimits,
    ) -> Result<bool, StateError> {
        let kept = self.0.get(space).and_then(|values| values.get(key));
        if !expected.is(kept.map(String::as_str)) {
            return Ok(false);
        }
        let Some(value) = value else {
            if let Some(values) = self.0.get_mut(space) {
                values.remove(key);
                if values.is_empty() {
                    self.0.remove(space);
                }
            }
            return Ok(true);
        };
        let more = state_size(key, value);
        let less = kept.map_or(0, |kept| state_size(key, kept));
        let of_user = |other: &&StateSpace| other.tenant == space.tenant && other.user == space.user;
        let user: u64 =
            self.0.iter().filter(|(other, _)| of_user(other)).map(|(_, values)| size(values)).sum();
        let (keys, bytes) = self.0.get(space).map_or((0, 0), |values| (values.len(), size(values)));
        let keys = keys + usize::from(kept.is_none());
        let fits = keys <= limits.max_keys
            && bytes + more - less <= limits.max_space_bytes
            && user + more - less <= limits.max_user_bytes;
        if !fits {
            return Err(StateError::Full { key: key.to_owned() });
        }
        self.0.entry(space.clone()).or_default().insert(key.to_owned(), value.to_owned());
        Ok(true)
    }

    pub(in crate::store) fn keys(&self, space: &StateSpace) -> Vec<String> {
        self.0.get(space).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    pub(in crate::store) fn of_users(
        &self,
        tenant: &str,
        name: &str,
        key: &str,
        after: &str,
        most: usize,
    ) -> Vec<(String, String)> {
        let kept = self.0.iter().filter_map(|(space, values)| {
            let user = space.user.as_deref().filter(|user| *user > after)?;
            let is_meant = space.tenant == tenant && space.name == name;
            is_meant.then(|| Some((user.to_owned(), values.get(key)?.clone())))?
        });
        kept.take(most).collect()
    }

    pub(in crate::store) fn delete_of(&mut self, tenant: &str, user: &str) -> usize {
        let mut deleted = 0;
        self.0.retain(|space, values| {
            let gone = space.tenant == tenant && space.user.as_deref() == Some(user);
            deleted += if gone { values.len() } else { 0 };
            !gone
        });
        deleted
    }
}
