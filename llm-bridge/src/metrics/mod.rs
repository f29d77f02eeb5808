//! The metrics of a server, for Prometheus: `docs/metrics.md` lists them.
//!
//! There are no global metrics: two servers in one process have their own.

mod calls;
mod definition;
mod http;
mod upstream;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use prometheus::{Gauge, GaugeVec, TextEncoder};
use registry_core::Registry;
use toolrack_remote::{
    BreakerState, SourceReport,
    mcp::{McpServerReport, McpServers, McpState},
    module::{ModuleReport, Modules},
};

pub use calls::CallMetrics;
use definition::Metric;
pub(crate) use http::HttpMetrics;
pub(crate) use upstream::UpstreamMetrics;

const BREAKER_STATES: [(BreakerState, &str); 3] =
    [(BreakerState::Closed, "closed"), (BreakerState::Open, "open"), (BreakerState::HalfOpen, "half_open")];

/// The sources of metrics that a server is given.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Metrics {
    calls: Option<Arc<CallMetrics>>,
    mcp_servers: Option<McpServers>,
}

impl Metrics {
    /// Adds the counters of calls.
    pub fn with_calls(self, calls: Arc<CallMetrics>) -> Self {
        Self { calls: Some(calls), ..self }
    }

    /// Adds the states of MCP servers.
    pub fn with_mcp_servers(self, servers: McpServers) -> Self {
        Self { mcp_servers: Some(servers), ..self }
    }

    /// The current metrics in the text format of Prometheus.
    pub(crate) async fn text(
        &self,
        registry: &Registry,
        modules: &Modules,
        upstream: Option<&UpstreamMetrics>,
        http: &HttpMetrics,
        (store_is_well, store_took): (bool, Duration),
    ) -> Result<String, prometheus::Error> {
        let scrape = Scrape(prometheus::Registry::new());
        let counted = self.calls.iter().flat_map(|calls| calls.collectors());
        let counted = counted.chain(upstream.into_iter().flat_map(|upstream| upstream.collectors()));
        for collector in counted.chain(http.collectors()) {
            scrape.0.register(collector)?;
        }
        scrape.registry(registry).await?;
        scrape.modules(&modules.reports())?;
        if let Some(servers) = &self.mcp_servers {
            scrape.mcp_servers(&servers.reports())?;
        }
        scrape.gauges(&definition::STORE_UP, [([], usize::from(store_is_well))])?;
        scrape.gauge(&definition::STORE_SECONDS, store_took.as_secs_f64())?;
        scrape.gauges(&definition::BUILD, [([env!("CARGO_PKG_VERSION")], 1)])?;
        TextEncoder::new().encode_to_string(&scrape.0.gather())
    }
}

/// The metrics of one scrape.
struct Scrape(prometheus::Registry);

impl Scrape {
    fn gauges<'l, const LABELS: usize>(
        &self,
        metric: &Metric,
        rows: impl IntoIterator<Item = ([&'l str; LABELS], usize)>,
    ) -> Result<(), prometheus::Error> {
        let gauges = GaugeVec::new(metric.opts(), metric.labels)?;
        for (labels, value) in rows {
            // Far below the precision of a float.
            #[allow(clippy::cast_precision_loss)]
            gauges.get_metric_with_label_values(&labels)?.set(value as f64);
        }
        self.0.register(Box::new(gauges))
    }

    fn gauge(&self, metric: &Metric, value: f64) -> Result<(), prometheus::Error> {
        let gauge = Gauge::with_opts(metric.opts())?;
        gauge.set(value);
        self.0.register(Box::new(gauge))
    }

    /// 1 for the current state of each row, and 0 for the others.
    fn states<'n, S: Copy + PartialEq>(
        &self,
        metric: &Metric,
        states: &[(S, &'n str)],
        rows: impl Iterator<Item = (&'n str, S)>,
    ) -> Result<(), prometheus::Error> {
        let rows = rows.flat_map(|(name, state)| {
            states.iter().map(move |(other, word)| ([name, *word], usize::from(*other == state)))
        });
        self.gauges(metric, rows)
    }

    async fn registry(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let queues = registry.queues();
        self.gauges(&definition::RUNNING, [([], queues.all.running)])?;
        self.gauges(&definition::WAITING, [([], queues.all.waiting)])?;
        let tools = || queues.tools.iter();
        self.gauges(&definition::TOOL_RUNNING, tools().map(|(tool, depth)| ([&**tool], depth.running)))?;
        self.gauges(&definition::TOOL_WAITING, tools().map(|(tool, depth)| ([&**tool], depth.waiting)))?;
        match registry.approvals_waiting().await {
            Ok(waiting) => self.gauges(&definition::APPROVALS, [([], waiting)])?,
            // The other metrics do not need the store.
            Err(cause) => tracing::error!(%cause, "store_failed"),
        }
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for tool in registry.list_all(true) {
            *kinds.entry(calls::kind_of(&tool)).or_default() += 1;
        }
        self.gauges(&definition::TOOLS, kinds.into_iter().map(|(kind, tools)| ([kind], tools)))
    }

    fn modules(&self, reports: &[ModuleReport]) -> Result<(), prometheus::Error> {
        let states = [("new", "new"), ("reachable", "reachable"), ("away", "away")];
        let state = |report: &ModuleReport| match (&report.source.error, report.fetched_at) {
            (Some(_), _) => "away",
            (None, Some(_)) => "reachable",
            (None, None) => "new",
        };
        let rows = || reports.iter().map(|report| (report.source.name.as_str(), report));
        self.states(&definition::MODULE_STATE, &states, rows().map(|(name, report)| (name, state(report))))?;
        let ages = rows().filter_map(|(name, report)| Some(([name], usize::try_from(report.age?).ok()?)));
        self.gauges(&definition::MODULE_AGE, ages)?;
        let metrics =
            [&definition::MODULE_BREAKER, &definition::MODULE_TOOLS, &definition::MODULE_QUARANTINED];
        self.sources(metrics, || reports.iter().map(|report| &report.source))
    }

    fn mcp_servers(&self, reports: &[McpServerReport]) -> Result<(), prometheus::Error> {
        let states = [
            (McpState::Connecting, "connecting"),
            (McpState::Connected, "connected"),
            (McpState::Away, "away"),
            (McpState::Closed, "closed"),
        ];
        let rows = reports.iter().map(|report| (report.source.name.as_str(), report.state));
        self.states(&definition::MCP_STATE, &states, rows)?;
        let metrics = [&definition::MCP_BREAKER, &definition::MCP_TOOLS, &definition::MCP_QUARANTINED];
        self.sources(metrics, || reports.iter().map(|report| &report.source))
    }

    /// What modules and MCP servers have in common.
    fn sources<'s, S: Iterator<Item = &'s SourceReport>>(
        &self,
        [breaker, tools, quarantined]: [&Metric; 3],
        reports: impl Fn() -> S,
    ) -> Result<(), prometheus::Error> {
        let breakers = reports().map(|report| (report.name.as_str(), report.breaker));
        self.states(breaker, &BREAKER_STATES, breakers)?;
        self.gauges(tools, reports().map(|report| ([report.name.as_str()], report.tools)))?;
        self.gauges(quarantined, reports().map(|report| ([report.name.as_str()], report.quarantined())))
    }
}
