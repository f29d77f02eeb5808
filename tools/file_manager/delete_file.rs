use registry_core::prelude::*;

use crate::file_folder::FileFolder;

/// Delete a file from the folder of files permanently. Returns the path.
#[tool(
    title = "Delete a file",
    version = "1.0.0",
    tags = ["files"],
    permission = Permission::User,
    effect = Effect::Destructive,
    reads = nothing,
    sends = nothing,
    example = "Delete the file notes/milk.md." => {"path": "notes/milk.md"}
)]
async fn delete_file(
    folder: Resource<FileFolder>,
    /// Path in the folder of files, such as "notes/plan.md".
    #[arg(length = 1.., example = "notes/plan.md")]
    path: &str,
) -> Result<ToolResult, ToolError> {
    folder.delete(path).await
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn t8_a_deleted_file_is_gone() {
        let whole = tempfile::tempdir().unwrap();
        std::fs::write(whole.path().join("plan.md"), "").unwrap();
        let folder = Resource::new(FileFolder::new(whole.path()));
        let result = delete_file(folder, "plan.md").await.unwrap();
        assert_eq!(result.for_model(), r#"{"deleted":"plan.md"}"#);
        assert!(!whole.path().join("plan.md").exists());
    }
}
