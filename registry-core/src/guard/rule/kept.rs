//! The rules of one person, as they are kept: all of them under one key of the state store, so that they go with the person.

use std::{sync::Arc, time::Duration};

use super::{ApprovalRule, RuleError};
use crate::store::{Expected, StateError, StateLimits, StateSpace, StateStore, StoreError};

/// What rules are kept under. No tool's values have such a name.
const SPACE: &str = "approval rules";
const KEY: &str = "rules";
/// The most rules of a person.
pub const MAX_RULES: usize = 100;
/// Of so many people the rules are listed at a time.
pub const MAX_PEOPLE: usize = 20;
const LIMITS: StateLimits = StateLimits {
    max_value_bytes: 1 << 20,
    max_keys: 1,
    max_space_bytes: 1 << 20,
    max_user_bytes: u64::MAX,
    ..StateLimits::DEFAULT
};
/// How often a change is begun anew because the rules were changed meanwhile.
const TRIES: u64 = 64;

/// Where the rules of a person are.
pub(crate) struct Rules {
    store: Arc<dyn StateStore>,
    space: StateSpace,
}

impl Rules {
    pub(crate) fn of(store: &Arc<dyn StateStore>, tenant: &str, user: &str) -> Self {
        let space =
            StateSpace { tenant: tenant.to_owned(), user: Some(user.to_owned()), name: SPACE.to_owned() };
        Self { store: Arc::clone(store), space }
    }

    /// All of them, oldest first.
    pub(crate) async fn all(&self) -> Result<Vec<ApprovalRule>, StoreError> {
        read(self.store.state(&self.space, KEY).await?.as_deref())
    }

    /// Those of all people of a tenant behind one, oldest first, [`MAX_PEOPLE`] people at most.
    pub(crate) async fn of_people(
        store: &dyn StateStore,
        tenant: &str,
        after: &str,
    ) -> Result<Vec<(String, Vec<ApprovalRule>)>, StoreError> {
        let kept = store.states_of_users(tenant, SPACE, KEY, after, MAX_PEOPLE).await?;
        kept.into_iter().map(|(user, rules)| Ok((user, read(Some(&rules))?))).collect()
    }

    /// Keeps a rule; false where there is one already that allows the same.
    pub(crate) async fn add(&self, new: ApprovalRule) -> Result<bool, RuleError> {
        self.change(|rules| {
            if rules.iter().any(|known| known.is_like(&new)) {
                return Ok(false);
            }
            if rules.len() >= MAX_RULES {
                return Err(RuleError::Full);
            }
            rules.push(new.clone());
            Ok(true)
        })
        .await
    }

    /// Forgets those rules that this is true of, and gives them.
    pub(crate) async fn remove(
        &self,
        gone: impl Fn(&ApprovalRule) -> bool + Send,
    ) -> Result<Vec<ApprovalRule>, RuleError> {
        self.change(|rules| {
            let (gone, left) = std::mem::take(rules).into_iter().partition(|rule| gone(rule));
            *rules = left;
            Ok(gone)
        })
        .await
    }

    /// Changes them in one step, whoever else does.
    async fn change<T>(
        &self,
        mut change: impl FnMut(&mut Vec<ApprovalRule>) -> Result<T, RuleError>,
    ) -> Result<T, RuleError> {
        for tries in 0..TRIES {
            let kept = self.store.state(&self.space, KEY).await?;
            let mut rules = read(kept.as_deref())?;
            let before = rules.len();
            let done = change(&mut rules)?;
            if rules.len() == before {
                return Ok(done);
            }
            let text = match rules.is_empty() {
                true => None,
                false => Some(serde_json::to_string(&rules).map_err(StoreError::invalid)?),
            };
            let expected = Expected::Exactly(kept.as_deref());
            let put = self.store.put_state(&self.space, KEY, text.as_deref(), expected, &LIMITS).await;
            match put {
                Ok(true) => return Ok(done),
                Ok(false) => tokio::time::sleep(Duration::from_millis(tries)).await,
                Err(StateError::Store(cause)) => return Err(cause.into()),
                Err(StateError::Full { .. }) => return Err(RuleError::Full),
                Err(other) => return Err(StoreError::invalid(other).into()),
            }
        }
        Err(StoreError::conflict("the rules of a person are changed all the time").into())
    }
}

fn read(kept: Option<&str>) -> Result<Vec<ApprovalRule>, StoreError> {
    let broken = |error| StoreError::corrupt(format!("the rules of a person cannot be read: {error}"));
    kept.map_or_else(|| Ok(Vec::new()), |kept| serde_json::from_str(kept).map_err(broken))
}
