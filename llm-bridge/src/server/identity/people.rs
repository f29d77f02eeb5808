//! People whom the provider names: added and changed as users here, with records in the audit.

use std::sync::Arc;

use registry_core::{
    Caller, DEFAULT_TENANT, Origin,
    clock::{Clock, SystemClock},
    store::{StoreError, User},
};
use serde_json::json;

use super::{Identities, IdentityError};
use crate::{
    personas::change_user,
    recorded::{Change, recorded},
    sign_in::{Person, SignIn, TokenError},
};

/// How many users a tenant may have for another to be added by signing in: who they are the provider says, and there it may be easy.
const MAX_USERS: usize = 100_000;

impl Identities {
    /// The user whom the provider names, as known here: added if new, and changed where groups decide and have changed.
    pub(in crate::server) async fn user_of(&self, person: &Person) -> Result<User, IdentityError> {
        let (store, tenant, id) = (&self.settings.store, &person.tenant, &person.user);
        let at = (tenant.clone(), id.clone());
        let is_newest = self.newest.get(&at).is_none_or(|newest| newest <= person.issued_at);
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
                let (store, at, new) = (Arc::clone(store), at.clone(), user.clone());
                let add = async move { store.put_user(&at.0, new).await };
                self.recorded(person, "sign-in user add", add).await?;
                user
            }
            // An older token may be of a time when groups were others.
            Some(user) if person.by_groups && is_newest => {
                let changed = User { level: person.level, personas: person.personas.clone(), ..user.clone() };
                if changed != user {
                    let (store, to) = (Arc::clone(store), person.clone());
                    let change = async move {
                        let change = |user: &mut User| {
                            user.level = to.level;
                            user.personas.clone_from(&to.personas);
                        };
                        change_user(store.as_ref(), &to.tenant, &to.user, change).await
                    };
                    self.recorded(person, "sign-in user change", change).await?;
                }
                changed
            }
            Some(user) => user,
        };
        if is_newest {
            self.newest.insert(at, person.issued_at);
        }
        if person.by_groups {
            user.level = user.level.min(person.level);
        }
        Ok(user)
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
        Ok(())
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
