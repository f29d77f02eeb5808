use registry_core::prelude::*;

use crate::file_folder::FileFolder;

/// Writes a new text file, such as a Markdown document, into the folder of files. A file that is there already is not changed.
#[tool(
    title = "Create a document",
    version = "1.0.0",
    tags = ["files"],
    permission = Permission::User,
    effect = Effect::Write,
    daily_limit = 100
)]
async fn create_document(
    folder: Resource<FileFolder>,
    /// Where to, from the folder of files on: "notes/plan.md". Folders are made.
    #[arg(length = 1.., example = "notes/plan.md")]
    path: &str,
    /// The text of the file.
    content: &str,
) -> Result<ToolResult, ToolError> {
    folder.create(path, content).await
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn t8_a_document_is_a_file_in_the_folder() {
        let whole = tempfile::tempdir().unwrap();
        let folder = Resource::new(FileFolder::new(whole.path()));
        let result = create_document(folder, "notes/plan.md", "# Plan\n").await.unwrap();
        assert_eq!(result.for_model(), r#"{"created":"notes/plan.md"}"#);
        assert_eq!(std::fs::read_to_string(whole.path().join("notes/plan.md")).unwrap(), "# Plan\n");
    }
}
