//! Who runs a command, for the audit.

/// The account of the operating system. On Unix the system says which: the variables of the environment say whatever their owner likes.
pub(super) fn account() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let named = named.filter(|name| !name.is_empty());
    #[cfg(unix)]
    return {
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        of(rustix::process::getuid().as_raw(), &accounts, named.as_deref())
    };
    #[cfg(not(unix))]
    named.unwrap_or_else(|| "operator".to_owned())
}

/// The name of an account in the lines of `/etc/passwd`. Another directory may know it, which is not asked: then its number, with what it is
/// called by itself.
#[cfg(unix)]
fn of(id: u32, accounts: &str, named: Option<&str>) -> String {
    let is_it = |fields: &Vec<&str>| fields.get(2).is_some_and(|field| field.parse() == Ok(id));
    let known = accounts.lines().map(|line| line.split(':').collect()).find(is_it);
    match (known.and_then(|fields| fields.first().copied()), named) {
        (Some(name), _) if !name.is_empty() => name.to_owned(),
        (_, Some(named)) => format!("uid {id} ({named})"),
        _ => format!("uid {id}"),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn u5_the_system_says_whose_command_it_is() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\n# 7\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(of(1000, accounts, Some("root")), "ada");
        assert_eq!(of(0, accounts, None), "root");
        assert_eq!(of(7, accounts, Some("root")), "uid 7 (root)");
        assert_eq!(of(7, "", None), "uid 7");
    }
}
