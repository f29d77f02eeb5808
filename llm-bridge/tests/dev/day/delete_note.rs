use registry_core::prelude::*;

/// Delete a note. This cannot be undone.
#[tool(permission = Permission::User, effect = Effect::Destructive)]
async fn delete_note(
    /// Its name.
    #[arg(pattern = "^[a-z0-9_]+$")]
    name: &str,
) -> ToolResult {
    ToolResult::new(json!({"deleted": name})).with_side_effect(format!("deleted:notes/{name}.md"))
}
