//! The log of sources: `module` or `server` names the one that a line is about.

/// Logs about a source.
macro_rules! log_source {
    ($level:ident, $remote:expr, $($line:tt)+) => {{
        let name = &*$remote.name;
        match $remote.kind {
            registry_core::RemoteKind::Module => tracing::$level!(module = name, $($line)+),
            registry_core::RemoteKind::Mcp => tracing::$level!(server = name, $($line)+),
        }
    }};
}

pub(crate) use log_source;
