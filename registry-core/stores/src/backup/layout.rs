//! Which tables belong together, as the statements that lay them out say.

/// The tables of one part of the program in a PostgreSQL database.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Names the part.
    pub name: &'static str,
    /// The table that has the version of the others, in its column `version`.
    pub version_table: &'static str,
    /// What lays out each version of the tables from the one before.
    pub steps: &'static [&'static str],
}

impl Layout {
    /// The tables of [`SqlStore`](crate::SqlStore).
    pub const STORE: Self =
        Self { name: "store", version_table: "toolrack_schema", steps: &crate::postgres::SCHEMA };

    /// The names of all tables that any version has had, in the order in which they are made.
    pub(super) fn tables(&self) -> Vec<&'static str> {
        let mut names = self.created("TABLE");
        let mut known = std::collections::BTreeSet::new();
        names.retain(|name| known.insert(*name));
        names
    }

    /// Statements that remove all of it, where it is there.
    pub(super) fn removal(&self) -> Vec<String> {
        let mut statements = vec![format!("DROP TABLE IF EXISTS {} CASCADE", self.version_table)];
        for kind in ["TABLE", "FUNCTION", "TEXT SEARCH CONFIGURATION", "TEXT SEARCH DICTIONARY"] {
            let names = self.created(kind).into_iter().rev();
            statements.extend(names.map(|name| format!("DROP {kind} IF EXISTS {name} CASCADE")));
        }
        statements
    }

    fn created(&self, kind: &str) -> Vec<&'static str> {
        let lines = self.steps.iter().flat_map(|step| step.lines());
        let name = |line: &'static str| {
            let rest = line.strip_prefix("CREATE ")?;
            let rest = rest.strip_prefix("OR REPLACE ").unwrap_or(rest);
            let rest = rest.strip_prefix(kind)?.strip_prefix(' ')?;
            let rest = rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest);
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
        };
        lines.filter_map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_the_tables_of_a_store_are_read_from_its_schema() {
        let tables = Layout::STORE.tables();
        for table in ["users", "audit", "conversations", "responses", "tool_state", "files", "jobs"] {
            assert_eq!(tables.iter().filter(|name| **name == table).count(), 1, "{table}: {tables:?}");
        }
        let place = |name| tables.iter().position(|table| *table == name);
        assert!(place("conversations") < place("responses"));
        let removal = Layout::STORE.removal();
        assert!(removal.contains(&"DROP FUNCTION IF EXISTS tell_revision CASCADE".to_owned()), "{removal:?}");
    }
}
