use registry_core::prelude::*;

/// Draw a blue square.
#[tool]
async fn square() -> Result<(String, Image), ToolError> {
    let drawing = r#"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><rect width="64" height="64" fill="blue"/></svg>"#;
    Ok(("A square:".to_owned(), Image::of_type("image/svg+xml", drawing)?))
}
