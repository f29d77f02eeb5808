use registry_core::prelude::*;

use crate::inbox::{Inbox, Note};

/// Archive source material that the user contributes, such as an article or a link. Use it when the user wants the material kept. Returns the path of the entry.
///
/// The user's own message is kept beside the description.
#[tool(
    title = "Archive a source",
    version = "1.0.0",
    tags = ["inbox"],
    permission = Permission::User,
    effect = Effect::Write,
    reads = nothing,
    sends = nothing,
    text_tag = TextTag::new("SOURCE").example("SOURCE: [description]"),
    example = "Keep https://example.org/report as a source: the annual report of 2025." => {"description": "https://example.org/report"}
)]
async fn source(
    ctx: &ToolContext,
    inbox: Resource<Inbox>,
    /// What the material is and says, with its address where it has one.
    #[arg(length = 1..)]
    description: &str,
) -> Result<ToolResult, ToolError> {
    inbox.add(Note::new(ctx, "source", description).with_user_message(ctx)).await
}

#[cfg(test)]
mod tests {
    use registry_core::Conversation;

    use super::*;

    #[tokio::test]
    async fn t8_a_source_has_the_users_message() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Resource::new(Inbox::new(folder.path()));
        let user_message = Some("Look: https://one.example/\n\"Boiling\"".to_owned());
        let ctx = ToolContext::default()
            .with_conversation(Conversation { user_message, ..Conversation::default() });
        let result = source(&ctx, inbox, "An article on boiling.").await.unwrap();
        let path = result.value["created"].as_str().unwrap().strip_prefix("inbox/").unwrap();
        let said = std::fs::read_to_string(folder.path().join(path)).unwrap();
        assert!(
            said.contains(
                "\nuser_message: \"Look: https://one.example/\\n\\\"Boiling\\\"\"\n---\n\nAn article"
            ),
            "{said}"
        );
    }
}
