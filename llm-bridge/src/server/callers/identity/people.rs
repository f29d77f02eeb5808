//! People whom the provider names: added and changed as users here, with records in the audit.

use std::sync::Arc;

use registry_core::{
    Caller, DEFAULT_TENANT, Origin,
    clock::{Clock, SystemClock},
    store::{Expected, StateError, StateLimits, StateSpace, StoreError, User},
};
use serde_json::json;

use super::{Identities, IdentityError};
use crate::{
    identifier::check_new_user,
    personas::change_user,
    recorded::{Change, recorded},
    sign_in::{Person, SignIn, TokenError},
};

/// How many users a tenant may have for another to be added by signing in: who they are the provider says, and there it may be easy.
const MAX_USERS: usize = 100_000;
/// What is kept for a person: when the newest token was issued, in seconds.
const NEWEST: &str = "newest token";

impl Identities {
    /// The user whom the provider names, as known here: added if new, and changed where groups decide and have changed.
    pub(in crate::server) async fn user_of(&self, person: &Person) -> Result<User, IdentityError> {
        let (store, tenant, id) = (&self.settings.store, &person.tenant, &person.user);
        let known = store.user(tenant, id).await?;
        let mut user = match known {
            None => {
                self.may_be_added(person)?;
                if store.count_users(tenant).await? >= MAX_USERS {
                    let why = format!("there are {MAX_USERS} users already; an operator has to remove some");
                    return Err(TokenError::NotAllowed(why).into());
                }
                let (level, personas) = (person.level, person.personas.clone());
                let user = User { id: id.clone(), level, personas, created_at: SystemClock.now() };
                let (store, at, new) = (Arc::clone(store), tenant.clone(), user.clone());
                let add = async move { store.put_user(&at, new).await };
                self.recorded(person, "sign-in user add", add).await?;
                if person.by_groups {
                    self.is_newest(person, true).await?;
                }
                user
            }
            Some(user) if person.by_groups => {
                let changed = User { level: person.level, personas: person.personas.clone(), ..user.clone() };
                // An older token may be of a time when groups were others.
                if !self.is_newest(person, changed != user).await? {
                    user
                } else if changed != user {
                    let (store, to) = (Arc::clone(store), person.clone());
                    let change = async move {
                        let change = |user: &mut User| {
                            user.level = to.level;
                            user.personas.clone_from(&to.personas);
                        };
                        change_user(store.as_ref(), &to.tenant, &to.user, change).await
                    };
                    self.recorded(person, "sign-in user change", change).await?;
                    changed
                } else {
                    user
                }
            }
            Some(user) => user,
        };
        if person.by_groups {
            user.level = user.level.min(person.level);
        }
        Ok(user)
    }

    /// Whether no token of this person was seen that was issued later, here, at another server of the same store, or before a restart. `anew`
    /// asks the store also about a token that was the newest a moment ago.
    async fn is_newest(&self, person: &Person, anew: bool) -> Result<bool, StoreError> {
        let at = (person.tenant.clone(), person.user.clone());
        match self.newest.get(&at) {
            Some(newest) if newest > person.issued_at => return Ok(false),
            Some(newest) if newest == person.issued_at && !anew => return Ok(true),
            _ => {}
        }
        let (state, issued_at) = (self.registry.state_store(), person.issued_at.to_string());
        let space = StateSpace {
            tenant: person.tenant.clone(),
            user: Some(person.user.clone()),
            name: "sign-in".to_owned(),
        };
        let newest = loop {
            let kept = state.state(&space, NEWEST).await?;
            let newest = kept.as_deref().and_then(|kept| kept.parse::<i64>().ok());
            if let Some(newest) = newest.filter(|newest| *newest >= person.issued_at) {
                break newest;
            }
            let expected = Expected::Exactly(kept.as_deref());
            // What tools keep for the person takes none of this room.
            let limits = StateLimits { max_user_bytes: u64::MAX, ..StateLimits::DEFAULT };
            match state.put_state(&space, NEWEST, Some(&issued_at), expected, &limits).await {
                Ok(true) => break person.issued_at,
                Ok(false) => {}
                Err(StateError::Store(cause)) => return Err(cause),
                Err(other) => return Err(StoreError::corrupt(other)),
            }
        };
        self.newest.insert(at, newest);
        Ok(newest <= person.issued_at)
    }

    fn may_be_added(&self, person: &Person) -> Result<(), TokenError> {
        let Person { tenant, user, .. } = person;
        let is_configured = *tenant == DEFAULT_TENANT && *user == self.settings.caller.user;
        if is_configured || !self.sign_in().is_some_and(SignIn::creates_users) {
            let of_tenant =
                if tenant == DEFAULT_TENANT { String::new() } else { format!(" --tenant {tenant}") };
            return Err(TokenError::NotAllowed(format!(
                "{user} is not a user of this server; an operator adds users with `toolrack user add {user}{of_tenant}`"
            )));
        }
        check_new_user(user).map_err(|rule| {
            TokenError::NotAllowed(format!("the name of a new user has to be {rule}; {user:?} is not"))
        })
    }

    /// Makes a change of users that a sign-in brings about, between its records in the audit, also where its client goes away in the middle.
    async fn recorded<T: Send + 'static>(
        &self,
        person: &Person,
        command: &'static str,
        make: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, IdentityError> {
        let by = Caller::new(&person.user, person.level);
        let arguments = json!({"user": person.user, "level": person.level, "personas": person.personas});
        let change = Change { command, tenant: person.tenant.clone(), arguments };
        let audit = Arc::clone(self.registry.audit());
        let made = self
            .tasks
            .spawn(async move { recorded(audit.as_ref(), &by, Origin::Http, change, make).await })
            .await
            .map_err(StoreError::unavailable)?;
        Ok(made.map_err(IdentityError::Audit)??)
    }
}
