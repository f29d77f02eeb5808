//! Conversations in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

use super::{ConversationError, ConversationLimits, StoredResponse};
use crate::store::StoreError;

/// The conversations of all users, by tenant and user.
#[derive(Debug, Default)]
pub(in crate::store) struct MemoryConversations {
    by_owner: BTreeMap<(String, String), Owned>,
}

/// The conversations of one user.
#[derive(Debug, Default)]
struct Owned {
    conversations: HashMap<String, Conversation>,
    /// With the ids of their conversations.
    responses: HashMap<String, (String, StoredResponse)>,
}

#[derive(Debug)]
struct Conversation {
    used_at: Timestamp,
    size: u64,
}

impl MemoryConversations {
    pub(in crate::store) fn keep(
        &mut self,
        response: StoredResponse,
        now: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<(), ConversationError> {
        self.delete_expired(limits.since(now));
        let owner = (response.tenant.clone(), response.user.clone());
        self.by_owner.entry(owner).or_default().keep(response, now, limits)
    }

    pub(in crate::store) fn response(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
    ) -> Option<StoredResponse> {
        self.of(tenant, user)?.response(id, since).cloned()
    }

    pub(in crate::store) fn chain(
        &self,
        tenant: &str,
        user: &str,
        id: &str,
        since: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<Vec<Arc<str>>, ConversationError> {
        let owned = self.of(tenant, user).ok_or(ConversationError::Unknown)?;
        let (mut chain, mut bytes, mut next) = (Vec::new(), 0_u64, Some(id));
        while let Some(id) = next {
            let response = owned.response(id, since).ok_or(ConversationError::Unknown)?;
            bytes = bytes.saturating_add(u64::try_from(response.messages.len()).unwrap_or(u64::MAX));
            chain.push(Arc::clone(&response.messages));
            limits.check_chain(chain.len(), bytes)?;
            next = response.previous.as_deref();
        }
        chain.reverse();
        Ok(chain)
    }

    pub(in crate::store) fn delete(&mut self, tenant: &str, user: &str, id: &str) -> bool {
        let Some(owned) = self.by_owner.get_mut(&(tenant.to_owned(), user.to_owned())) else { return false };
        let Some((conversation, response)) = owned.responses.remove(id) else { return false };
        let is_empty = !owned.responses.values().any(|(of, _)| *of == conversation);
        match owned.conversations.get_mut(&conversation) {
            Some(_) if is_empty => drop(owned.conversations.remove(&conversation)),
            Some(known) => known.size = known.size.saturating_sub(response.size()),
            None => {}
        }
        true
    }

    /// Gives how many responses there were.
    pub(in crate::store) fn delete_of(&mut self, tenant: &str, user: &str) -> usize {
        let owned = self.by_owner.remove(&(tenant.to_owned(), user.to_owned()));
        owned.map_or(0, |owned| owned.responses.len())
    }

    pub(in crate::store) fn delete_expired(&mut self, since: Timestamp) {
        self.by_owner.retain(|_, owned| {
            owned.retain(|_, conversation| conversation.used_at > since);
            !owned.conversations.is_empty()
        });
    }

    fn of(&self, tenant: &str, user: &str) -> Option<&Owned> {
        self.by_owner.get(&(tenant.to_owned(), user.to_owned()))
    }
}

impl Owned {
    fn keep(
        &mut self,
        response: StoredResponse,
        now: Timestamp,
        limits: &ConversationLimits,
    ) -> Result<(), ConversationError> {
        let begins = response.previous.is_none();
        if self.responses.contains_key(&response.id)
            || begins && self.conversations.contains_key(&response.id)
        {
            return Err(StoreError::invalid("there is a response of this id already").into());
        }
        let conversation = match &response.previous {
            None => response.id.clone(),
            Some(previous) => self.responses.get(previous).ok_or(ConversationError::Unknown)?.0.clone(),
        };
        let (size, max) = (response.size(), limits.max_user_bytes);
        let known = self.conversations.get(&conversation).map_or(0, |known| known.size);
        if known.saturating_add(size) > max {
            return Err(ConversationError::Full { max });
        }
        self.conversations
            .insert(conversation.clone(), Conversation { used_at: now, size: known.saturating_add(size) });
        self.responses.insert(response.id.clone(), (conversation.clone(), response));
        self.make_room(&conversation, limits);
        Ok(())
    }

    /// Drops conversations beyond the limits, those that were not used for longest first, but not the one in use.
    fn make_room(&mut self, in_use: &str, limits: &ConversationLimits) {
        let mut newest: Vec<(&String, &Conversation)> = self.conversations.iter().collect();
        newest.sort_by_key(|(id, known)| (*id == in_use, known.used_at, *id));
        newest.reverse();
        let mut bytes = 0_u64;
        let beyond = |(at, (id, known)): (usize, (&String, &Conversation))| {
            bytes = bytes.saturating_add(known.size);
            (at >= limits.max_user_conversations.max(1) || bytes > limits.max_user_bytes).then(|| id.clone())
        };
        let beyond: Vec<String> = newest.into_iter().enumerate().filter_map(beyond).collect();
        if !beyond.is_empty() {
            self.retain(|id, _| !beyond.iter().any(|dropped| dropped == id));
        }
    }

    fn retain(&mut self, keeps: impl Fn(&str, &Conversation) -> bool) {
        let before = self.conversations.len();
        self.conversations.retain(|id, conversation| keeps(id, conversation));
        if self.conversations.len() < before {
            self.responses.retain(|_, (conversation, _)| self.conversations.contains_key(conversation));
        }
    }

    fn response(&self, id: &str, since: Timestamp) -> Option<&StoredResponse> {
        let (conversation, response) = self.responses.get(id)?;
        let used_at = self.conversations.get(conversation)?.used_at;
        (used_at > since).then_some(response)
    }
}
