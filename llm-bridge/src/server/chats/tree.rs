//! The messages of a chat as a tree.

use std::collections::HashMap;

use registry_core::store::ChatMessage;

/// The messages of a chat as a tree.
pub(super) struct Tree<'m> {
    by_id: HashMap<&'m str, &'m ChatMessage>,
    all: &'m [ChatMessage],
}

impl<'m> Tree<'m> {
    pub(super) fn of(all: &'m [ChatMessage]) -> Self {
        Self { by_id: all.iter().map(|message| (message.id.as_str(), message)).collect(), all }
    }

    pub(super) fn get(&self, id: &str) -> Option<&'m ChatMessage> {
        self.by_id.get(id).copied()
    }

    /// The way from the root to a message.
    pub(super) fn path(&self, id: &str) -> Vec<&'m ChatMessage> {
        let mut path: Vec<&ChatMessage> = Vec::new();
        let mut next = self.get(id);
        // Messages have a parent that was there before them, so that there is no circle but in a store that was tampered with.
        while let Some(message) = next.filter(|_| path.len() < self.all.len()) {
            path.push(message);
            next = message.parent.as_deref().and_then(|parent| self.get(parent));
        }
        path.reverse();
        path
    }

    /// The last message of the newest branch below a message.
    pub(super) fn leaf_below(&self, id: &str) -> Option<&'m ChatMessage> {
        let mut leaf = self.get(id)?;
        let newest = |id: &str| self.all.iter().rfind(|message| message.parent.as_deref() == Some(id));
        for _ in self.all {
            match newest(&leaf.id) {
                Some(child) => leaf = child,
                None => break,
            }
        }
        Some(leaf)
    }

    /// A message and all below it.
    pub(super) fn below(&self, id: &str) -> Vec<String> {
        let mut below = vec![id.to_owned()];
        let mut at = 0;
        while let Some(parent) = below.get(at).cloned().filter(|_| below.len() <= self.all.len()) {
            let children = self.all.iter().filter(|message| message.parent.as_deref() == Some(&parent));
            below.extend(children.map(|message| message.id.clone()));
            at += 1;
        }
        below
    }

    /// The last message of the branch that is shown where this one is gone with all below it.
    pub(super) fn leaf_without(&self, gone: &ChatMessage) -> Option<&'m ChatMessage> {
        let is_sibling = |message: &&ChatMessage| message.parent == gone.parent && message.id != gone.id;
        let sibling = self.all.iter().rfind(is_sibling);
        match sibling {
            Some(sibling) => self.leaf_below(&sibling.id),
            None => self.get(gone.parent.as_deref()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question with two answers, the first of which goes on.
    fn messages() -> Vec<ChatMessage> {
        let rows = [("q", None), ("a", Some("q")), ("q2", Some("a")), ("a2", Some("q2")), ("b", Some("q"))];
        let message = |(id, parent): (&str, Option<&str>)| ChatMessage {
            id: id.to_owned(),
            parent: parent.map(str::to_owned),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            text: String::new(),
            document: "{}".into(),
            context: "".into(),
        };
        rows.map(message).into()
    }

    #[test]
    fn b17_a_branch_is_shown_to_its_end_and_goes_with_all_below() {
        let all = messages();
        let tree = Tree::of(&all);
        let ids = |path: Vec<&ChatMessage>| path.iter().map(|message| message.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(tree.path("a2")), ["q", "a", "q2", "a2"]);
        assert!(tree.path("none").is_empty());
        let leaf = |id| tree.leaf_below(id).map(|leaf| leaf.id.as_str());
        assert_eq!([leaf("q"), leaf("a"), leaf("none")], [Some("b"), Some("a2"), None], "the newest branch");
        assert_eq!(tree.below("a"), ["a", "q2", "a2"]);
        let without = |id| tree.leaf_without(tree.get(id).unwrap()).map(|leaf| leaf.id.as_str());
        assert_eq!([without("b"), without("a2"), without("q")], [Some("a2"), Some("q2"), None]);
    }

    #[test]
    fn b17_a_circle_in_a_store_that_was_tampered_with_ends() {
        let mut all = messages();
        all[0].parent = Some("a2".to_owned());
        let tree = Tree::of(&all);
        assert_eq!(tree.path("a2").len(), all.len());
        assert!(tree.leaf_below("a").is_some());
        assert!(tree.below("a").len() <= all.len() + 1);
    }
}
