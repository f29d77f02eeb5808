//! Names, labels and descriptions of the metrics, as in `docs/metrics.md`.

use prometheus::{HistogramOpts, Opts};

/// The histogram buckets of durations, in seconds.
const SECONDS: [f64; 15] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// A metric.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

impl Metric {
    pub(crate) fn opts(&self) -> Opts {
        Opts::new(self.name, self.help)
    }

    pub(crate) fn histogram_opts(&self) -> HistogramOpts {
        HistogramOpts::new(self.name, self.help).buckets(SECONDS.to_vec())
    }
}

/// A constant for each metric, and the list of all.
macro_rules! metrics {
    ($($constant:ident = $name:literal $labels:tt $help:literal;)*) => {
        // Only the program has MCP servers as sources.
        $(#[cfg_attr(not(feature = "cli"), allow(dead_code))]
        pub(crate) const $constant: Metric =
            Metric { name: $name, labels: &$labels, help: $help };)*
        #[cfg(test)]
        const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    CALLS = "toolrack_calls_total" ["tool", "kind", "outcome", "source"]
        "Calls by outcome; a call that was retried counts with its first attempt";
    RETRIES = "toolrack_call_retries_total" ["tool", "kind", "outcome", "source"]
        "Retries of calls by outcome";
    CALL_SECONDS = "toolrack_call_duration_seconds" ["tool", "kind"]
        "How long tools ran, each attempt on its own, without time in the queue";
    RUNNING = "toolrack_calls_running" []
        "Running calls";
    WAITING = "toolrack_calls_waiting" []
        "Queued calls";
    TOOL_RUNNING = "toolrack_tool_calls_running" ["tool"]
        "Running calls of a tool with max_concurrent";
    TOOL_WAITING = "toolrack_tool_calls_waiting" ["tool"]
        "Queued calls of a tool with max_concurrent";
    APPROVALS = "toolrack_approvals_waiting" []
        "Calls that wait for human approval";
    TOOLS = "toolrack_tools" ["kind"]
        "Tools of the tenant default, disabled ones included";
    MODULE_STATE = "toolrack_module_state" ["module", "state"]
        "1 for the state of the module and 0 for the others: new, reachable, away";
    MODULE_BREAKER = "toolrack_module_breaker_state" ["module", "state"]
        "1 for the state of the circuit breaker of the module and 0 for the others: closed, open, half_open";
    MODULE_TOOLS = "toolrack_module_tools" ["module"]
        "Tools of the module, unavailable ones included";
    MODULE_QUARANTINED = "toolrack_module_tools_quarantined" ["module"]
        "Tools of the module that are off until accepted";
    MODULE_AGE = "toolrack_module_manifest_age_seconds" ["module"]
        "Age of the module's manifest";
    MCP_STATE = "toolrack_mcp_server_state" ["server", "state"]
        "1 for the state of the MCP server and 0 for the others: connecting, connected, away, closed";
    MCP_BREAKER = "toolrack_mcp_server_breaker_state" ["server", "state"]
        "1 for the state of the circuit breaker of the MCP server and 0 for the others: closed, open, half_open";
    MCP_TOOLS = "toolrack_mcp_server_tools" ["server"]
        "Tools of the MCP server";
    MCP_QUARANTINED = "toolrack_mcp_server_tools_quarantined" ["server"]
        "Tools of the MCP server that are off until accepted";
    UPSTREAM_REQUESTS = "toolrack_upstream_requests_total" ["upstream", "outcome"]
        "Requests to the model server by outcome";
    UPSTREAM_SECONDS = "toolrack_upstream_response_seconds" ["upstream"]
        "Time until the model server's answer began";
    HTTP_REQUESTS = "toolrack_http_requests_total" ["route", "status"]
        "Requests of clients by route and status";
    HTTP_SECONDS = "toolrack_http_response_seconds" ["route"]
        "Time until the answer to a client began";
    STORE_UP = "toolrack_store_up" []
        "1 where the store takes what is written, else 0";
    STORE_SECONDS = "toolrack_store_answer_seconds" []
        "How long the store took when it was asked last, at a scrape or for readyz";
    BUILD = "toolrack_build_info" ["version"]
        "Always 1, with the version of the server";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of the table, without what stands in it for layout.
    fn row(line: &str) -> Option<Vec<String>> {
        let cells = line.strip_prefix("| `toolrack_")?.strip_suffix(" |")?;
        let cells = cells.split(" | ").map(|cell| cell.trim().replace('`', ""));
        // The type is seen in what a server answers.
        Some(cells.enumerate().filter(|(place, _)| *place != 1).map(|(_, cell)| cell).collect())
    }

    #[test]
    fn b5_the_table_of_the_documentation_has_what_is_measured() {
        let documented: Vec<_> = include_str!("../../../docs/metrics.md").lines().filter_map(row).collect();
        let measured: Vec<_> = ALL
            .iter()
            .map(|metric| {
                let name = metric.name.strip_prefix("toolrack_").unwrap().to_owned();
                vec![name, metric.labels.join(", "), metric.help.to_owned()]
            })
            .collect();
        assert_eq!(documented, measured);
    }

    #[test]
    fn b5_names_are_as_prometheus_wants_them() {
        for Metric { name, labels, help } in ALL {
            assert!(!help.is_empty() && !help.ends_with('.') && !help.contains('|'), "{name}");
            for word in labels.iter().chain([name]) {
                let fits = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
                assert!(word.bytes().all(fits) && !word.starts_with("__"), "{word}");
            }
        }
    }
}
