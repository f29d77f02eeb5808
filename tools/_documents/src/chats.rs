//! Documents of single chats: found by the tools of their chat alone, and by nobody else.
//!
//! They are kept apart from the documents that the users of a tenant share, as if they were another tenant's: what lists, searches or queries
//! those never comes to these. Among each other they are told apart by their folder, which is that of one chat of one user.

use registry_core::{ToolContext, ToolError};

use super::{DocumentFilter, Documents, Passage, StoredDocument, rank_fusion::reciprocal_rank_fusion};

/// What their paths begin with where they are shown, in place of their folder.
const SHOWN: &str = "this chat";

/// Where the documents of a tenant's chats are. No tenant has such a name: those have no control characters.
fn place_of(tenant: &str) -> String {
    format!("\u{1}chats of {tenant}")
}

/// The folder of a user's chat.
fn folder_of(user: &str, chat: &str) -> String {
    format!("{}/{}", part(user), part(chat))
}

/// Names a chat's folder among those of all tenants.
fn key(tenant: &str, folder: &str) -> String {
    format!("{tenant}\u{1}{folder}")
}

/// Whether that is where the documents of a tenant's chats are.
pub(super) fn is_place_of_chats(tenant: &str) -> bool {
    tenant.starts_with(&place_of(""))
}

/// A name as a part of a path, which is no other name's.
fn part(name: &str) -> String {
    match name {
        "." | ".." => name.replace('.', "%2E"),
        name => name.replace('%', "%25").replace('/', "%2F").replace('\\', "%5C").replace('\0', "%00"),
    }
}

/// The documents of one chat.
#[derive(Debug, Clone)]
pub struct ChatDocuments {
    /// Those of all chats of the tenant.
    all: Documents,
    tenant: String,
    /// Of all chats of the user.
    of_user: String,
    folder: String,
}

impl Documents {
    /// The documents of a chat of a user; `None` where documents of one tenant are not kept apart from another's, so that those of a chat
    /// would not be either.
    pub fn of_chat(&self, (tenant, user): (&str, &str), chat: &str) -> Option<ChatDocuments> {
        let all = Self { is_of_chats: true, ..self.for_tenant(&place_of(tenant)) };
        let of_user = part(user);
        let folder = folder_of(user, chat);
        self.is_by_tenant.then(|| ChatDocuments { all, tenant: tenant.to_owned(), of_user, folder })
    }

    /// Whether these are documents of chats, of which no model extracts names.
    pub fn are_of_chats(&self) -> bool {
        self.is_of_chats
    }

    /// Those of the chat that a request is in, where there are any.
    pub(super) fn of_request_chat(&self, context: &ToolContext) -> Option<ChatDocuments> {
        let (owner, chat) =
            ((context.tenant(), context.caller().user.as_str()), context.conversation().chat_id.as_deref()?);
        // Most chats have none, and then nothing is opened.
        let is_there = self.chats.lock().contains(&key(owner.0, &folder_of(owner.1, chat)));
        if is_there { self.of_chat(owner, chat) } else { None }
    }

    /// Removes the documents of all chats of a user, and says how many there were.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remove_of_chats(&self, owner: (&str, &str)) -> Result<usize, ToolError> {
        let Some(chats) = self.of_chat(owner, "") else { return Ok(0) };
        let ChatDocuments { all, tenant, of_user, .. } = &chats;
        let begins = key(tenant, &format!("{of_user}/"));
        self.chats.lock().retain(|known| !known.starts_with(&begins));
        all.refresh().await;
        // Where there are none, no file is made to look.
        if all.are_there() { Ok(all.remove(of_user).await?.len()) } else { Ok(0) }
    }

    /// At most `limit` passages, as [`search`](Self::search) finds them, of these documents and of those of the chat that the request is
    /// in. Paths of these begin with `this chat/`, also in the filter.
    ///
    /// # Errors
    /// When there is no word to look for, or the store fails.
    pub async fn search_for(
        &self,
        context: &ToolContext,
        query: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let Some(chat) = self.of_request_chat(context) else {
            return self.search(query, limit, filter).await;
        };
        match filter.below.as_deref().map(ChatDocuments::within) {
            Some(Some(inner)) => chat.search(query, limit, inner, filter).await,
            Some(None) => self.search(query, limit, filter).await,
            None if !self.are_there() => chat.search(query, limit, "", filter).await,
            None => {
                let (own, shared) =
                    tokio::join!(chat.search(query, limit, "", filter), self.search(query, limit, filter));
                Ok(reciprocal_rank_fusion([own?, shared?], limit))
            }
        }
    }
}

impl ChatDocuments {
    /// What can be done with them, among those of all chats of the tenant: only with a path of this chat.
    pub fn all(&self) -> &Documents {
        &self.all
    }

    /// The folder of the user's chats, for a quota.
    pub fn of_user(&self) -> &str {
        &self.of_user
    }

    /// The path of a document of this chat.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The document's name in this chat.
    fn name<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(&*self.folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
    }

    /// What a shown path means within a chat; `None` for the path of another document.
    fn within(path: &str) -> Option<&str> {
        let rest = path.strip_prefix(SHOWN)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }

    /// Whether there are any, as it was [looked](Self::list) last.
    pub fn are_there(&self) -> bool {
        self.all.chats.lock().contains(&self.key())
    }

    fn key(&self) -> String {
        key(&self.tenant, &self.folder)
    }

    /// All of them by name, the folder left out of their paths. From then on the tools of this chat find them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self) -> Result<Vec<StoredDocument>, ToolError> {
        if !self.all.are_there() {
            self.all.refresh().await;
        }
        let below = Some(self.folder.clone());
        let mut found = match self.all.are_there() {
            true => self.all.list(&DocumentFilter { below, ..DocumentFilter::default() }).await?,
            false => Vec::new(),
        };
        for document in &mut found {
            document.path = self.name(&document.path).to_owned();
        }
        match found.is_empty() {
            true => self.all.chats.lock().remove(&self.key()),
            false => self.all.chats.lock().insert(self.key()),
        };
        Ok(found)
    }

    /// Removes a document, or all of them; says how many there were.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remove(&self, name: Option<&str>) -> Result<usize, ToolError> {
        let path = name.map_or_else(|| self.folder.clone(), |name| self.path(name));
        if !self.all.are_there() {
            self.all.refresh().await;
        }
        let removed = if self.all.are_there() { self.all.remove(&path).await?.len() } else { 0 };
        self.list().await?;
        Ok(removed)
    }

    async fn search(
        &self,
        query: &str,
        limit: usize,
        inner: &str,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let below = if inner.is_empty() { self.folder.clone() } else { self.path(inner) };
        let filter = DocumentFilter { below: Some(below), ..filter.clone() };
        let mut found = self.all.search(query, limit, &filter).await?;
        for passage in &mut found {
            passage.path = format!("{SHOWN}/{}", self.name(&passage.path));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Caller, Conversation, Permission, Registry};

    use super::*;
    use crate::{DocumentKind, read};

    const ADA: (&str, &str) = ("default", "ada");

    async fn add(documents: &Documents, path: &str, text: &str) {
        let document = read::document(path, DocumentKind::Text, text.as_bytes(), None).unwrap();
        documents.add(document).await.unwrap();
    }

    async fn add_to(documents: &Documents, owner: (&str, &str), chat: &str, name: &str, text: &str) {
        let chat = documents.of_chat(owner, chat).unwrap();
        add(chat.all(), &chat.path(name), text).await;
        chat.list().await.unwrap();
    }

    fn of(tenant: &str, user: &str, chat: Option<&str>) -> ToolContext {
        let conversation = Conversation { chat_id: chat.map(str::to_owned), ..Conversation::default() };
        let registry = Registry::builder().without_compiled().build().unwrap().for_tenant(tenant);
        registry.context(Caller::new(user, Permission::User)).with_conversation(conversation)
    }

    async fn found(documents: &Documents, context: &ToolContext, below: Option<&str>) -> Vec<String> {
        let filter = DocumentFilter { below: below.map(str::to_owned), ..DocumentFilter::default() };
        let found = documents.search_for(context, "tea", 10, &filter).await.unwrap();
        let mut paths: Vec<String> = found.into_iter().map(|passage| passage.path).collect();
        paths.sort();
        paths
    }

    #[tokio::test]
    async fn b17_documents_of_a_chat_are_found_in_it_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::in_file(folder.path().join("documents.db"));
        let ours = of("default", "ada", Some("one"));
        assert!(documents.for_request(&ours).is_err(), "there is nothing yet");
        add_to(&documents, ADA, "one", "tea.txt", "Green tea is steeped at 75 degrees.").await;
        // The tools of this chat are on, and nobody else's.
        let found_there = documents.for_request(&ours).unwrap();
        assert_eq!(found(&found_there, &ours, None).await, ["this chat/tea.txt"]);
        let others = [
            of("default", "ada", Some("two")),
            of("default", "ada", Some("on")),
            of("default", "ada", None),
            of("default", "bob", Some("one")),
            of("default", "ada/one", Some("")),
            of("acme", "ada", Some("one")),
        ];
        for context in &others {
            assert!(documents.for_request(context).is_err(), "{context:?}");
        }
        add(&documents, "shared/tea.txt", "Black tea is steeped at 95 degrees.").await;
        for context in &others[..5] {
            assert_eq!(found(&documents, context, None).await, ["shared/tea.txt"], "{context:?}");
            assert_eq!(found(&documents, context, Some("this chat")).await, [""; 0], "{context:?}");
        }
        // Beside the shared ones, and by themselves.
        assert_eq!(found(&documents, &ours, None).await, ["shared/tea.txt", "this chat/tea.txt"]);
        for below in ["this chat", "this chat/tea.txt"] {
            assert_eq!(found(&documents, &ours, Some(below)).await, ["this chat/tea.txt"], "{below}");
        }
        assert_eq!(found(&documents, &ours, Some("shared")).await, ["shared/tea.txt"]);
        assert_eq!(found(&documents, &ours, Some("this chat/../../bob")).await, [""; 0]);
        // What lists or queries the shared ones does not come to them.
        assert_eq!(documents.list(&DocumentFilter::default()).await.unwrap().len(), 1);
        assert_eq!(documents.select("SELECT path FROM documents").await.unwrap().rows.len(), 1);
        let reading: Vec<bool> = documents.in_use().iter().map(Documents::are_of_chats).collect();
        assert_eq!(reading.iter().filter(|of_chats| **of_chats).count(), 1, "{reading:?}");
    }

    #[tokio::test]
    async fn b17_documents_of_a_chat_go_with_it_or_with_the_user_and_are_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("documents.db");
        let documents = Documents::in_file(&file);
        for (user, chat) in [("ada", "one"), ("ada", "two"), ("ada2", "one"), ("bob", "one")] {
            add_to(&documents, ("default", user), chat, "notes/tea.txt", "Green tea.").await;
        }
        let again = Documents::in_file(&file);
        let one = again.of_chat(ADA, "one").unwrap();
        assert!(!one.are_there());
        let listed = one.list().await.unwrap();
        assert_eq!((listed[0].path.as_str(), one.are_there()), ("notes/tea.txt", true));
        assert_eq!(one.remove(Some("nothing")).await.unwrap(), 0);
        assert_eq!(one.remove(None).await.unwrap(), 1);
        assert!(!one.are_there() && one.list().await.unwrap().is_empty());
        assert_eq!(again.remove_of_chats(ADA).await.unwrap(), 1);
        for (user, count) in [("ada", 0), ("ada2", 1), ("bob", 1)] {
            let left = again.of_chat(("default", user), "one").unwrap().list().await.unwrap();
            assert_eq!(left.len(), count, "{user}");
        }
        assert!(again.of_chat(ADA, "two").unwrap().list().await.unwrap().is_empty());
    }
}
