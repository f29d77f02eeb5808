use registry_core::prelude::*;

use crate::file_folder::FileFolder;

/// Create a text file, such as a Markdown document, in the folder of files. Use it when the user wants something saved. Existing files are not changed. Returns the path.
#[tool(
    title = "Create a document",
    version = "1.0.0",
    tags = ["files"],
    permission = Permission::User,
    effect = Effect::Write,
    reads = nothing,
    sends = nothing,
    daily_limit = 100,
    example = "Write a file notes/milk.md with the words: buy milk" => {"path": "notes/milk.md", "content": "buy milk"}
)]
async fn create_document(
    ctx: &ToolContext,
    folder: Resource<FileFolder>,
    /// Path in the folder of files, such as "notes/plan.md". Missing folders are created.
    #[arg(length = 1.., example = "notes/plan.md")]
    path: &str,
    /// The text of the file.
    content: &str,
) -> Result<ToolResult, ToolError> {
    folder.create(&ctx.caller().user, path, content).await
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn t8_a_document_is_a_file_in_the_folder() {
        let whole = tempfile::tempdir().unwrap();
        let folder = Resource::new(FileFolder::new(whole.path()));
        let result =
            create_document(&ToolContext::default(), folder, "notes/plan.md", "# Plan\n").await.unwrap();
        assert_eq!(result.for_model(), r#"{"created":"notes/plan.md"}"#);
        assert_eq!(std::fs::read_to_string(whole.path().join("notes/plan.md")).unwrap(), "# Plan\n");
    }
}
