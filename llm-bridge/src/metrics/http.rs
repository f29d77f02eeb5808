//! Requests of clients.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, core::Collector};

use super::definition::{HTTP_REQUESTS, HTTP_SECONDS};

/// Counts requests by route and status.
#[derive(Debug, Clone)]
pub(crate) struct HttpMetrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
}

impl HttpMetrics {
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        Ok(Self {
            requests: IntCounterVec::new(HTTP_REQUESTS.opts(), HTTP_REQUESTS.labels)?,
            seconds: HistogramVec::new(HTTP_SECONDS.histogram_opts(), HTTP_SECONDS.labels)?,
        })
    }

    /// Counts a request to a route, which no client chooses; `took` is the time until its answer began.
    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        if let Ok(requests) = self.requests.get_metric_with_label_values(&[route, &status.to_string()]) {
            requests.inc();
        }
        if let Ok(seconds) = self.seconds.get_metric_with_label_values(&[route]) {
            seconds.observe(took.as_secs_f64());
        }
    }

    pub(super) fn collectors(&self) -> [Box<dyn Collector>; 2] {
        [Box::new(self.requests.clone()), Box::new(self.seconds.clone())]
    }
}
