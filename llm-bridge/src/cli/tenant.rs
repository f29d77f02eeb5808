//! The tenant that a command is about.

use registry_core::DEFAULT_TENANT;

/// The option `--tenant`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Tenant {
    /// The tenant
    #[arg(long, default_value = DEFAULT_TENANT, value_name = "NAME", value_parser = parse)]
    pub(super) tenant: String,
}

/// The longest name, in bytes.
const LONGEST: usize = 256;

/// Checks a tenant's name. `*` matches all tenants in the settings of webhooks, so no tenant can have that name.
pub(super) fn parse(text: &str) -> Result<String, String> {
    let is_name = !text.trim().is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
    match text {
        "*" => Err("`*` is every tenant, and none; name one".to_owned()),
        _ if is_name => Ok(text.to_owned()),
        _ => Err(format!("a tenant's name is a text of 1 to {LONGEST} bytes, without control characters")),
    }
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
