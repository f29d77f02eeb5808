use registry_core::prelude::*;

use crate::inbox::{Inbox, Note};

/// What a learning is about.
#[args]
#[derive(Debug)]
#[serde(rename_all = "snake_case")]
enum Category {
    Factual,
    Communication,
    StructuredData,
}

/// Record a correction or a new fact from the conversation. Use it when the user corrects you or tells you something worth remembering. Returns the path of the record.
#[tool(
    title = "Record a learning",
    version = "1.0.0",
    tags = ["inbox"],
    permission = Permission::User,
    effect = Effect::Write,
    reads = nothing,
    sends = nothing,
    text_tag = TextTag::new("LEARNING")
        .pattern(r"(factual|communication|structured_data)\s+(.+)")
        .groups(&["category", "content"])
        .example("LEARNING: [factual|communication|structured_data] [what was learned]"),
    example = "Remember as a fact that the office is closed on Fridays." => {"category": "factual", "content": "closed Fridays"}
)]
async fn learning(
    ctx: &ToolContext,
    inbox: Resource<Inbox>,
    /// What it is about: facts, how to talk with somebody, or data such as figures, names and dates.
    category: Category,
    /// What was learned.
    #[arg(length = 1..)]
    content: &str,
) -> Result<ToolResult, ToolError> {
    inbox.add(Note::new(ctx, "learning", content).with("category", json!(category))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn t8_a_learning_has_its_category() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = || Resource::new(Inbox::new(folder.path()));
        for (category, name) in [
            (Category::Factual, "factual"),
            (Category::Communication, "communication"),
            (Category::StructuredData, "structured_data"),
        ] {
            let result =
                learning(&ToolContext::default(), inbox(), category, "Ada is on leave.").await.unwrap();
            let path = result.value["created"].as_str().unwrap().strip_prefix("inbox/").unwrap();
            assert!(path.starts_with("learnings/"), "{path}");
            let said = std::fs::read_to_string(folder.path().join(path)).unwrap();
            assert!(said.starts_with("---\nkind: \"learning\"\n"), "{said}");
            assert!(said.contains(&format!("\ncategory: \"{name}\"\n")), "{said}");
            assert!(said.ends_with("---\n\nAda is on leave.\n"), "{said}");
        }
    }
}
