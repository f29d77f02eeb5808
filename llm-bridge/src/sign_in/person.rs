//! Somebody whom the provider names, and what the configured groups let them do.

use registry_core::Permission;
use serde_json::Value;

use super::{
    settings::SignInSettings,
    token::{Claims, TokenError},
};
use crate::identifier::check_identifier;

/// Somebody whom the provider names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Person {
    pub(crate) tenant: String,
    /// The user's id.
    pub(crate) user: String,
    /// The level of new users.
    pub(crate) level: Permission,
    /// The personas of new users, the default one first.
    pub(crate) personas: Vec<String>,
    /// Whether level and personas are those of the groups, also of users who are known.
    pub(crate) by_groups: bool,
    /// When the provider has said so, in seconds since 1970.
    pub(crate) issued_at: i64,
}

impl Person {
    /// Whether claims that are looked at are not there.
    pub(super) fn lacks_claims(claims: &Claims, settings: &SignInSettings) -> bool {
        claim(claims, &settings.user_claim).is_none()
            || is_email(settings) && claims.get("email_verified").is_none()
            || !settings.groups.is_empty() && claim(claims, &settings.groups_claim).is_none()
    }

    /// Adds what the provider says elsewhere to the claims of a token, which go before it.
    pub(super) fn add_claims(claims: &mut Claims, more: Claims) {
        let (Some(claims), Value::Object(more)) = (claims.as_object_mut(), more) else { return };
        // Who has verified an address says which: half of it may be another's.
        if ADDRESS.iter().any(|name| !claims.contains_key(*name)) {
            claims.retain(|name, _| !ADDRESS.contains(&name.as_str()));
        }
        for (name, value) in more {
            claims.entry(name).or_insert(value);
        }
    }

    /// # Errors
    /// When the claims name nobody, or somebody who may not come in.
    pub(super) fn of(claims: &Claims, issued_at: i64, settings: &SignInSettings) -> Result<Self, TokenError> {
        let named = &settings.user_claim;
        let user = claim(claims, named).and_then(Value::as_str).ok_or_else(|| {
            TokenError::NotAllowed(format!(
                "the token has no claim `{named}` that names the user; see `user_claim` under [sign_in]"
            ))
        })?;
        check_identifier(user).map_err(|rule| {
            TokenError::NotAllowed(format!("the claim `{named}` has to be {rule} to name a user"))
        })?;
        // Some providers let everybody enter any address.
        if is_email(settings) && claims.get("email_verified").and_then(Value::as_bool) != Some(true) {
            return Err(TokenError::NotAllowed(
                "the provider has not verified the address of this account".to_owned(),
            ));
        }
        let own = groups(claims, &settings.groups_claim);
        let groups: Vec<_> = settings
            .groups
            .iter()
            .filter(|(name, _)| own.contains(&name.as_str()))
            .map(|(_, group)| group)
            .collect();
        if groups.is_empty() && settings.groups_required {
            return Err(TokenError::NotAllowed(format!(
                "{user} is in no group that may use this server; the claim `{}` lists {}",
                settings.groups_claim,
                if own.is_empty() { "none".to_owned() } else { format!("{} others", own.len()) }
            )));
        }
        let mut personas: Vec<String> = Vec::new();
        for persona in groups.iter().flat_map(|group| &group.personas) {
            if !personas.contains(persona) {
                personas.push(persona.clone());
            }
        }
        Ok(Self {
            tenant: settings.tenant.clone(),
            user: user.to_owned(),
            level: groups.iter().map(|group| group.level).max().unwrap_or(settings.level),
            personas,
            by_groups: !settings.groups.is_empty(),
            issued_at,
        })
    }
}

/// The claims of an e-mail address.
const ADDRESS: [&str; 2] = ["email", "email_verified"];

/// Whether users are named by their e-mail address.
fn is_email(settings: &SignInSettings) -> bool {
    matches!(settings.user_claim.as_str(), "email" | "/email")
}

/// A claim by its name, or by a JSON pointer.
fn claim<'c>(claims: &'c Claims, name: &str) -> Option<&'c Value> {
    if name.starts_with('/') { claims.pointer(name) } else { claims.get(name) }
}

/// The groups in a claim: a list, or one.
fn groups<'c>(claims: &'c Claims, name: &str) -> Vec<&'c str> {
    match claim(claims, name) {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one.as_str()],
        _ => Vec::new(),
    }
}

/// Whether the claims have all scopes: in `scope` (RFC 9068), or in `scp` as some providers write it.
pub(super) fn has_scopes(claims: &Claims, wanted: &[String]) -> bool {
    let mut own = Vec::new();
    for value in ["scope", "scp"].iter().filter_map(|name| claims.get(name)) {
        match value {
            Value::String(words) => own.extend(words.split(' ')),
            Value::Array(all) => own.extend(all.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    wanted.iter().all(|scope| own.contains(&scope.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{super::settings::GroupSettings, *};

    fn settings() -> SignInSettings {
        let group = |level, personas: &[&str]| GroupSettings {
            level,
            personas: personas.iter().map(|name| (*name).to_owned()).collect(),
        };
        SignInSettings {
            issuer: "https://id.example".into(),
            level: Permission::Guest,
            groups: BTreeMap::from([
                ("staff".to_owned(), group(Permission::User, &["assistant", "coder"])),
                ("admins".to_owned(), group(Permission::Admin, &["coder", "ops"])),
            ]),
            ..SignInSettings::default()
        }
    }

    fn person(claims: Value, settings: &SignInSettings) -> Result<Person, String> {
        Person::of(&claims, 7, settings).map_err(|error| match error {
            TokenError::NotAllowed(message) => message,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn b21_groups_give_the_highest_level_and_all_their_personas() {
        let settings = settings();
        let ada = person(json!({"sub": "ada", "groups": ["staff", "admins", "x"]}), &settings).unwrap();
        assert_eq!((ada.level, ada.issued_at, ada.by_groups), (Permission::Admin, 7, true));
        assert_eq!(ada.personas, ["coder", "ops", "assistant"]);
        let bob = person(json!({"sub": "bob", "groups": "staff"}), &settings).unwrap();
        assert_eq!((bob.level, bob.personas.len()), (Permission::User, 2));
        // A claim of another kind lists nothing.
        for groups in [json!(null), json!({"staff": true}), json!([["staff"]]), json!(["Staff"]), json!(1)] {
            let eve = person(json!({"sub": "eve", "groups": groups}), &settings).unwrap();
            assert_eq!((eve.level, eve.personas.len()), (Permission::Guest, 0));
        }
        let strict = SignInSettings { groups_required: true, ..settings };
        let refused = person(json!({"sub": "eve", "groups": ["x"]}), &strict).unwrap_err();
        assert!(refused.contains("in no group"), "{refused}");
    }

    #[test]
    fn b21_the_claim_names_the_user_and_may_lie_deeper() {
        let nested = SignInSettings {
            user_claim: "/profile/login".into(),
            groups_claim: "/realm_access/roles".into(),
            ..settings()
        };
        let claims = json!({"sub": "1", "profile": {"login": "ada"}, "realm_access": {"roles": ["staff"]}});
        let ada = person(claims, &nested).unwrap();
        assert_eq!((ada.user.as_str(), ada.level), ("ada", Permission::User));
        for claims in
            [json!({"sub": "1"}), json!({"profile": {"login": 1}}), json!({"profile": {"login": " "}})]
        {
            assert!(person(claims.clone(), &nested).is_err(), "{claims}");
        }
    }

    #[test]
    fn b21_an_address_names_somebody_where_it_was_verified() {
        for name in ["email", "/email"] {
            let mail = SignInSettings { user_claim: name.into(), ..settings() };
            for unverified in [json!(null), json!(false), json!("true")] {
                let claims = json!({"email": "ada@example.org", "email_verified": unverified});
                assert!(person(claims, &mail).unwrap_err().contains("not verified"), "{name}");
            }
            let own = json!({"email": "ada@example.org", "email_verified": true});
            person(own.clone(), &mail).unwrap();
            // What was verified is the address that stands beside it.
            let other = json!({"email": "eve@example.org", "email_verified": true, "groups": ["staff"]});
            for (claims, more, user) in [
                (own, other.clone(), Some("ada@example.org")),
                (json!({"email": "ada@example.org"}), other.clone(), Some("eve@example.org")),
                (json!({"email_verified": true}), other, Some("eve@example.org")),
                (json!({"email": "ada@example.org"}), json!({"email_verified": true}), None),
                (json!({"email_verified": true}), json!({"email": "ada@example.org"}), None),
            ] {
                let mut all = claims.clone();
                Person::add_claims(&mut all, more);
                assert_eq!(person(all, &mail).ok().map(|person| person.user).as_deref(), user, "{claims}");
            }
        }
    }

    #[test]
    fn b21_scopes_come_in_two_claims_and_two_forms() {
        let wanted = ["tools".to_owned(), "chat".to_owned()];
        for (claims, has) in [
            (json!({"scope": "openid tools chat"}), true),
            (json!({"scp": ["chat", "tools"]}), true),
            (json!({"scope": "tools"}), false),
            (json!({"scope": "toolschat"}), false),
            (json!({}), false),
        ] {
            assert_eq!(has_scopes(&claims, &wanted), has, "{claims:?}");
        }
    }
}
