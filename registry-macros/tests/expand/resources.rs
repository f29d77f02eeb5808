/// Looks something up.
#[tool]
pub async fn look_up(http: Resource<HttpClient>, index: Resource<Index>, cache: Option<Resource<Cache>>) -> anyhow::Result<()> {
    Ok(())
}
