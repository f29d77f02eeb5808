//! Exchanging the access token that a user comes with, or has signed in with on the page, for one of an MCP server (RFC 8693). What a user
//! comes with, and what it was exchanged for, stays in memory.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::{
    Account, Connections,
    discovery::discover,
    kept::{Given, NoToken, Who},
    signed_in::Subject,
    web::Failed,
};

/// Of how many users a token is kept; of others it is asked for again.
const MAX_USERS: usize = 10_000;
/// How long a token that a user came with is exchanged, in seconds: no longer than most of them hold.
const COUNTS: i64 = 3600;
/// How long a token holds whose server does not say, in seconds.
const HOLDS: i64 = 300;
/// How long before its end a token is exchanged anew, in seconds.
const EARLY: i64 = 30;

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// The tokens that users came with, and those that they were exchanged for.
#[derive(Default)]
pub(super) struct Exchanged {
    came: Mutex<HashMap<Who, Held>>,
    given: Mutex<HashMap<(Who, String), Held>>,
}

struct Held {
    token: String,
    until: i64,
    /// The row of the session that it was exchanged for.
    row: Option<String>,
}

/// Keeps one more, and makes room where there is none.
fn keep<K: std::hash::Hash + Eq>(all: &mut HashMap<K, Held>, key: K, held: Held, now: i64) {
    if all.len() >= MAX_USERS {
        all.retain(|_, held| held.until > now);
        if all.len() >= MAX_USERS {
            all.clear();
        }
    }
    all.insert(key, held);
}

impl Exchanged {
    /// Gives whether the user was not known.
    pub(super) fn came_with(&self, who: Who, token: &str, now: i64) -> bool {
        let mut came = self.came.lock();
        match came.get_mut(&who) {
            Some(held) if held.token == token => false,
            Some(held) => {
                *held = Held { token: token.to_owned(), until: now + COUNTS, row: None };
                false
            }
            None => {
                keep(&mut came, who, Held { token: token.to_owned(), until: now + COUNTS, row: None }, now);
                true
            }
        }
    }

    pub(super) fn knows(&self, who: &Who, now: i64) -> bool {
        self.came.lock().get(who).is_some_and(|held| held.until > now)
    }

    pub(super) fn somebody(&self, now: i64) -> Option<Who> {
        let came = self.came.lock();
        came.iter()
            .filter(|(_, held)| held.until > now)
            .max_by_key(|(_, held)| held.until)
            .map(|(who, _)| who.clone())
    }

    /// The token that the user came with.
    pub(super) fn came(&self, who: &Who, now: i64) -> Option<String> {
        let came = self.came.lock();
        came.get(who).filter(|held| held.until > now).map(|held| held.token.clone())
    }

    pub(super) fn forget(&self, who: &Who) {
        self.came.lock().remove(who);
        self.forget_given(who);
    }

    pub(super) fn forget_given(&self, who: &Who) {
        self.given.lock().retain(|(of, _), _| of != who);
    }

    /// What a token was exchanged for, and the row of its session.
    fn given(&self, who: &Who, server: &str, now: i64) -> Option<(String, Option<String>)> {
        let given = self.given.lock();
        let held = given.get(&(who.clone(), server.to_owned())).filter(|held| held.until > now);
        held.map(|held| (held.token.clone(), held.row.clone()))
    }
}

impl Connections {
    /// The token of an MCP server for the one that the user came with, or has signed in with; another than the one that was refused.
    pub(super) async fn exchanged(
        &self,
        who: &Who,
        account: &Account,
        refused: Option<&str>,
    ) -> Result<String, NoToken> {
        let given = self.shared.exchanged.given(who, &account.name, self.now().as_second());
        if let Some((token, row)) = given.filter(|(token, _)| Some(token.as_str()) != refused)
            && self.is_kept(who, row.as_deref()).await?
        {
            return Ok(token);
        }
        let subject = self.subject(who, None).await?;
        match self.exchange(who, account, &subject).await {
            // Renewed it may be good, or that of another session is.
            Err(NoToken::Ask) => {
                let another = self.subject(who, Some(&subject.token)).await?;
                self.exchange(who, account, &another).await
            }
            exchanged => exchanged,
        }
    }

    async fn exchange(&self, who: &Who, account: &Account, subject: &Subject) -> Result<String, NoToken> {
        let now = self.now().as_second();
        let issuer = discover(account).await.map_err(NoToken::Later)?;
        let client = account.client(&issuer).map_err(NoToken::Later)?;
        let client = client.ok_or_else(|| NoToken::Later("`client_id` is missing".to_owned()))?;
        let scope = account.settings.scopes.join(" ");
        let mut fields = vec![
            ("grant_type", GRANT),
            ("subject_token", &*subject.token),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
            ("resource", account.url.as_str()),
        ];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let given =
            async { Given::read(&account.web.post_form(issuer.token.clone(), &client, &fields).await?) };
        let given = given.await.map_err(|failed| match failed {
            // The token that the user came with is not good for it, or not any more.
            Failed::Refused(_, error)
                if ["invalid_grant", "invalid_request", "invalid_target"].contains(&&*error) =>
            {
                tracing::info!(
                    server = &*account.name,
                    tenant = who.tenant,
                    user = who.user,
                    error,
                    "mcp_token_not_exchanged"
                );
                NoToken::Ask
            }
            failed => NoToken::Later(failed.text()),
        })?;
        let until = given.ends_at(self.now()).unwrap_or(now + HOLDS) - EARLY;
        let held = Held { token: given.access_token.clone(), until, row: subject.row.clone() };
        keep(&mut self.shared.exchanged.given.lock(), (who.clone(), account.name.to_string()), held, now);
        Ok(given.access_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_the_tokens_of_so_many_users_are_kept_and_no_more() {
        let (exchanged, who) =
            (Exchanged::default(), |number: usize| Who::of("default", &number.to_string()));
        for number in 0..MAX_USERS {
            // Of every other one it has ended by the time that there are too many.
            let now = if number % 2 == 0 { 0 } else { 1000 };
            assert!(exchanged.came_with(who(number), "token", now));
        }
        assert_eq!(exchanged.came.lock().len(), MAX_USERS);
        // Who comes again takes no other place.
        assert!(!exchanged.came_with(who(1), "another", 1000));
        assert_eq!(exchanged.came.lock().len(), MAX_USERS);
        let now = COUNTS + 1;
        assert!(exchanged.came_with(who(MAX_USERS), "token", now));
        assert_eq!(exchanged.came.lock().len(), MAX_USERS / 2 + 1);
        assert!(exchanged.knows(&who(1), now) && !exchanged.knows(&who(2), now));
        for number in 0..2 * MAX_USERS {
            let held = Held { token: String::new(), until: i64::MAX, row: None };
            keep(&mut exchanged.given.lock(), (who(number), "ledger".to_owned()), held, now);
            assert!(exchanged.given.lock().len() <= MAX_USERS);
        }
    }
}
