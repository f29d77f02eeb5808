//! Where traces go.

use std::time::Duration;

use serde::Deserialize;

use crate::traces::{TraceSettings, Traces};

/// Below the address of a collector, the path at which it takes spans.
const PATH: &str = "/v1/traces";

/// Traces for OpenTelemetry. The standard variables override the table, and switch traces on as well.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TracesSettings {
    /// The address of the collector, such as `http://127.0.0.1:4318`; without one nothing is sent.
    pub endpoint: Option<String>,
    /// Whether the last traces are kept in memory also where none is sent.
    pub keep: bool,
    /// Whether spans have arguments, results and the model's text.
    pub content: bool,
    /// Which part of the traces that begin here is kept, from 0 to 1.
    pub sample: f64,
}

impl Default for TracesSettings {
    fn default() -> Self {
        Self { endpoint: None, keep: true, content: false, sample: 1.0 }
    }
}

impl TracesSettings {
    /// Traces of a server, with the variables of the environment; `None` where nothing is traced.
    ///
    /// # Errors
    /// Names the setting or the variable that is wrong.
    pub(in crate::cli) fn start(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Traces>, String> {
        match self.traces(variable)? {
            Some(sent) => Traces::start(sent).map(Some),
            None => Ok(self.keep.then(|| Traces::in_memory(self.content, self.sample))),
        }
    }

    /// What is sent to a collector; `None` for nothing.
    ///
    /// # Errors
    /// Names the variable that is wrong.
    fn traces(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<TraceSettings>, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let below = |base: String| format!("{}{PATH}", base.trim_end_matches('/').trim_end_matches(PATH));
        let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(below))
            .or_else(|| self.endpoint.clone().filter(|endpoint| !endpoint.is_empty()).map(below));
        let Some(endpoint) = endpoint else { return Ok(None) };
        let of_traces = |name: &str| {
            let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
            names.into_iter().find_map(|name| Some((variable(&name)?, name)))
        };
        let headers = match of_traces("HEADERS") {
            Some((text, name)) => {
                headers(&text).ok_or_else(|| format!("{name}: write `key=value,key2=value2`"))?
            }
            None => Vec::new(),
        };
        let timeout = match of_traces("TIMEOUT") {
            Some((text, name)) => {
                text.trim().parse().map_err(|_| format!("{name}: `{text}` is no number of milliseconds"))?
            }
            None => 10_000,
        };
        Ok(Some(TraceSettings {
            endpoint,
            headers,
            timeout: Duration::from_millis(timeout),
            service: variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "toolrack".to_owned()),
            content: self.content,
            sample: self.sample,
        }))
    }

    /// Checks values that parse but are invalid.
    pub(super) fn check(&self) -> Result<(), String> {
        match (0.0..=1.0).contains(&self.sample) {
            true => Ok(()),
            false => Err("traces.sample: write a number from 0 to 1, such as 0.1 for a tenth".to_owned()),
        }
    }
}

/// `key=value,key2=value2`, with values percent-encoded; `None` where it is something else.
fn headers(text: &str) -> Option<Vec<(String, String)>> {
    let header = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim().to_owned(), value.into_owned()))
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_without_a_collector_the_last_traces_are_kept_unless_that_is_switched_off() {
        let none = |_: &str| None;
        let kept = TracesSettings::default();
        assert!(kept.start(none).unwrap().is_some());
        let off = TracesSettings { keep: false, ..kept.clone() };
        assert!(off.start(none).unwrap().is_none());
        let disabled = |name: &str| (name == "OTEL_SDK_DISABLED").then(|| "true".to_owned());
        let file = TracesSettings { endpoint: Some("http://127.0.0.1:9".to_owned()), ..kept };
        assert_eq!(format!("{:?}", file.start(disabled).unwrap().unwrap()), "Traces(in memory)");
    }

    #[test]
    fn b21_the_variables_of_opentelemetry_go_before_the_file() {
        let none = |_: &str| None;
        assert_eq!(TracesSettings::default().traces(none).unwrap(), None);
        let file = TracesSettings {
            endpoint: Some("http://collector:4318/".to_owned()),
            content: true,
            ..TracesSettings::default()
        };
        let traces = file.traces(none).unwrap().unwrap();
        assert_eq!((&*traces.endpoint, traces.content), ("http://collector:4318/v1/traces", true));
        assert_eq!((&*traces.service, traces.timeout), ("toolrack", Duration::from_secs(10)));

        let variables = |set: &'static [(&str, &str)]| {
            file.traces(move |name| {
                set.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let traces = variables(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://other:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key, x-team=a"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "500"),
            ("OTEL_SERVICE_NAME", "rack"),
        ]);
        let traces = traces.unwrap().unwrap();
        assert_eq!((&*traces.endpoint, &*traces.service), ("http://other:4318/v1/traces", "rack"));
        let headers = [("authorization", "Bearer key"), ("x-team", "a")];
        assert_eq!(traces.headers, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(traces.timeout, Duration::from_millis(500));
        // One for traces alone is the whole address.
        let traces = variables(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other/spans")]);
        assert_eq!(traces.unwrap().unwrap().endpoint, "http://other/spans");
        assert_eq!(variables(&[("OTEL_SDK_DISABLED", "true")]).unwrap(), None);
        for set in [&[("OTEL_EXPORTER_OTLP_HEADERS", "key")][..], &[("OTEL_EXPORTER_OTLP_TIMEOUT", "ten")]] {
            let fault = variables(set).unwrap_err();
            assert!(fault.starts_with(set[0].0), "{fault}");
        }
        TracesSettings { sample: 1.5, ..file.clone() }.check().unwrap_err();
    }
}
