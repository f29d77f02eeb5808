//! Notifies webhook endpoints of a command's change before it exits.

use std::{sync::Arc, time::Duration};

use registry_core::{Registry, RegistryEvent, store::DeadLetters};
use toolrack_http::webhook::{WebhookEndpoint, WebhookSettings, deliver_now};

use super::{Settings, out::tell, settings};

/// Two attempts within 11 s, because a person waits at the terminal.
fn hasty() -> WebhookSettings {
    WebhookSettings {
        attempts: 2,
        first_pause: Duration::from_secs(1),
        timeout: Duration::from_secs(5),
        ..WebhookSettings::default()
    }
}

/// All endpoints that are configured.
///
/// # Errors
/// When an endpoint is invalid, or its secret is not in the environment.
pub(super) fn endpoints(settings: &Settings) -> Result<Vec<WebhookEndpoint>, String> {
    settings.webhooks.iter().map(settings::WebhookSettings::endpoint).collect()
}

/// Sends one change. If delivery fails, it becomes a dead letter that a server can send again; the change itself stays.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub(super) async fn tell_of(
    event: &RegistryEvent,
    registry: &Registry,
    endpoints: Vec<WebhookEndpoint>,
    letters: Arc<dyn DeadLetters>,
) -> Result<(), String> {
    let dead = deliver_now(registry, endpoints, letters, hasty(), event).await;
    for letter in dead.map_err(|error| format!("webhooks: {error}"))? {
        tell(format_args!(
            "warning: delivery to {} failed: {}; `POST /api/dead-letters/{}` sends it again",
            letter.url, letter.cause, letter.id
        ));
    }
    Ok(())
}
