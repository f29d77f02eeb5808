use registry_core::prelude::*;

use crate::inbox::{Inbox, Note};

/// Draft a claim for the knowledge base from what the user asserts. Use it when the user states something that can be true or false and wants it kept. Returns the path of the draft.
#[tool(
    title = "Draft a claim",
    version = "1.0.0",
    tags = ["inbox"],
    permission = Permission::User,
    effect = Effect::Write,
    reads = nothing,
    sends = nothing,
    text_tag = TextTag::new("CLAIM").example("CLAIM: [specific assertion]"),
    example = "Write down as a claim that the bridge was opened in 1932." => {"assertion": "bridge opened 1932"}
)]
async fn claim(
    ctx: &ToolContext,
    inbox: Resource<Inbox>,
    /// The claim: one specific assertion that can be true or false.
    #[arg(length = 1..)]
    assertion: &str,
) -> Result<ToolResult, ToolError> {
    inbox.add(Note::new(ctx, "claim", assertion)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn t8_a_claim_is_a_file_in_the_inbox() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Resource::new(Inbox::new(folder.path()));
        let result = claim(&ToolContext::default(), inbox, "Water is wet.").await.unwrap();
        let path = result.value["created"].as_str().unwrap();
        assert_eq!(result.side_effects, [format!("created:{path}")]);
        let said = std::fs::read_to_string(folder.path().join(path.strip_prefix("inbox/").unwrap())).unwrap();
        assert!(path.starts_with("inbox/claims/") && said.ends_with("\n\nWater is wet.\n"), "{path}: {said}");
    }
}
