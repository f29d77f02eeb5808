//! The tenant that a command is about.

use registry_core::DEFAULT_TENANT;

use crate::identifier::check_identifier;

/// The option `--tenant`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Tenant {
    /// The tenant
    #[arg(long, default_value = DEFAULT_TENANT, value_name = "NAME", value_parser = parse)]
    pub(super) tenant: String,
}

/// Commands about one tenant.
#[derive(Debug, clap::Args)]
pub(super) struct InTenant<C: clap::Subcommand> {
    #[command(subcommand)]
    pub(super) command: C,
    /// The tenant
    #[arg(long, default_value = DEFAULT_TENANT, value_name = "NAME", global = true, value_parser = parse)]
    pub(super) tenant: String,
}

/// Checks a tenant's name. `*` matches all tenants in the settings of webhooks, so no tenant can have that name.
pub(super) fn parse(text: &str) -> Result<String, String> {
    if text == "*" {
        return Err("`*` is every tenant, and none; name one".to_owned());
    }
    check_identifier(text).map_err(|rule| format!("a tenant's name is {rule}"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn l5_a_tenant_has_a_name() {
        assert_eq!(parse("acme"), Ok("acme".to_owned()));
        for (bad, reported) in
            [("", "1 to 256"), (" ", "1 to 256"), ("a\n", "control"), ("*", "every tenant")]
        {
            assert!(parse(bad).unwrap_err().contains(reported), "{bad:?}");
        }
        assert!(parse(&"x".repeat(257)).is_err());
    }
}
