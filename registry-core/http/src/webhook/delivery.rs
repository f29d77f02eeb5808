//! Sends one message until it is delivered or given up.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use registry_core::{RegistryEvent, clock::Clock};
use reqwest::{Client, StatusCode, header::CONTENT_TYPE, redirect::Policy};
use serde_json::json;

use super::{WebhookEndpoint, WebhookSettings};
use crate::{build_client, describe, message_id};

/// An event for one endpoint.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) event: RegistryEvent,
}

impl Message {
    /// Each copy has a name of its own.
    pub(super) fn new(event: &RegistryEvent) -> Self {
        // Without randomness the time still tells most messages apart, and none is lost.
        let id = message_id().unwrap_or_else(|_| format!("msg_{}", event.ts.as_nanosecond()));
        Self { id, event: event.clone() }
    }

    fn body(&self) -> String {
        let kind = format!("tool.{}", self.event.change.as_str());
        json!({"type": kind, "timestamp": self.event.ts, "data": self.event}).to_string()
    }
}

/// Delivers messages, as patiently as the settings say.
pub(super) struct Worker {
    client: Client,
    settings: WebhookSettings,
    clock: Arc<dyn Clock>,
}

/// Why a message was not delivered.
struct Failed {
    cause: String,
    /// Whether the endpoint says that it will never take any.
    is_final: bool,
}

impl Worker {
    pub(super) fn new(settings: WebhookSettings, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        let client = build_client(|| Client::builder().redirect(Policy::none()).timeout(settings.timeout))?;
        Ok(Self { client, settings, clock })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sends it until it is delivered; else how often it was sent, and what went wrong the last time.
    pub(super) async fn deliver(
        &self,
        endpoint: &WebhookEndpoint,
        message: &Message,
    ) -> Result<(), (u32, String)> {
        let body = message.body();
        let mut attempt = 1;
        loop {
            let Err(Failed { cause, is_final }) = self.send(endpoint, &message.id, body.clone()).await else {
                return Ok(());
            };
            if is_final || attempt >= self.settings.attempts {
                return Err((attempt, cause));
            }
            let pause = self.pause(attempt);
            tracing::warn!(
                id = message.id,
                url = endpoint.shown(),
                attempt,
                cause,
                ?pause,
                "webhook_delivery_failed"
            );
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn send(&self, endpoint: &WebhookEndpoint, id: &str, body: String) -> Result<(), Failed> {
        let timestamp = self.now().as_second();
        let request = self
            .client
            .post(endpoint.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", endpoint.secret.sign(id, timestamp, &body))
            .body(body);
        match request.send().await.map(|response| response.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) if status.is_redirection() => {
                let cause =
                    format!("it answered {status}, and redirects are not followed: configure where it leads");
                Err(Failed { cause, is_final: false })
            }
            Ok(status) => {
                Err(Failed { cause: format!("it answered {status}"), is_final: status == StatusCode::GONE })
            }
            Err(error) => Err(Failed { cause: describe(error), is_final: false }),
        }
    }

    /// Twice as long after each attempt, and never the same, so that many do not come back at one moment.
    fn pause(&self, attempt: u32) -> Duration {
        let doubled = self.settings.first_pause.saturating_mul(2_u32.saturating_pow(attempt - 1));
        let share =
            f64::from(u16::try_from(RandomState::new().hash_one(0) & 0xffff).unwrap_or_default()) / 65536.0;
        let longest = doubled.min(self.settings.longest_pause);
        longest.saturating_sub(longest.mul_f64(share / 2.0))
    }
}
