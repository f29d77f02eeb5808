//! Requests to model servers.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, core::Collector};

use super::definition::{UPSTREAM_REQUESTS, UPSTREAM_SECONDS};
use crate::upstream::UpstreamError;

/// Counts requests to model servers by outcome.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamMetrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
}

impl UpstreamMetrics {
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        Ok(Self {
            requests: IntCounterVec::new(UPSTREAM_REQUESTS.opts(), UPSTREAM_REQUESTS.labels)?,
            seconds: HistogramVec::new(UPSTREAM_SECONDS.histogram_opts(), UPSTREAM_SECONDS.labels)?,
        })
    }

    /// Counts a request to the upstream of this name; `took` is the time until its answer began, or it failed.
    pub(crate) fn asked(&self, upstream: &str, failure: Option<&UpstreamError>, took: Duration) {
        let outcome = match failure {
            None => "success",
            Some(UpstreamError::Unreachable { .. }) => "unreachable",
            Some(
                UpstreamError::Refused { .. } | UpstreamError::NoModel(_) | UpstreamError::AnsweredElsewhere,
            ) => "refused",
            Some(UpstreamError::Failed(_)) => "failed",
            Some(UpstreamError::Stalled(_)) => "stalled",
            Some(UpstreamError::Interrupted(_)) => "interrupted",
        };
        if let Ok(requests) = self.requests.get_metric_with_label_values(&[upstream, outcome]) {
            requests.inc();
        }
        if failure.is_none()
            && let Ok(seconds) = self.seconds.get_metric_with_label_values(&[upstream])
        {
            seconds.observe(took.as_secs_f64());
        }
    }

    pub(super) fn collectors(&self) -> [Box<dyn Collector>; 2] {
        [Box::new(self.requests.clone()), Box::new(self.seconds.clone())]
    }
}
