//! What a configuration file may not say although it parses.

use super::{GateSettings, Settings, WebhookSettings, modules};
use crate::{
    cli::address,
    identifier::check_identifier,
    turn::{Limits, known_dialect},
};

/// How long each stage of the stop may take, in seconds.
const LONGEST_STOP: u64 = 3600;

/// The longest instructions for MCP clients, in bytes: they are in every prompt of the clients' models.
const MAX_INSTRUCTIONS: usize = 4096;

impl Settings {
    /// Checks values that parse but are invalid.
    pub(super) fn check(&self) -> Result<(), String> {
        self.upstreams.iter().try_for_each(|(name, table)| table.check(name, &self.upstreams))?;
        self.webhooks.iter().try_for_each(WebhookSettings::check)?;
        self.gate.iter().try_for_each(GateSettings::check)?;
        self.conversations.check()?;
        if let Some(sign_in) = &self.sign_in {
            sign_in.check()?;
            self.sign_in_url()?;
        }
        for (key, seconds) in
            [("drain_seconds", self.drain_seconds), ("shutdown_seconds", self.shutdown_seconds)]
        {
            if seconds > LONGEST_STOP {
                return Err(format!("{key}: a server stops within an hour; write at most {LONGEST_STOP}"));
            }
        }
        self.store.check()?;
        self.audit.check()?;
        if let Some(length) =
            self.mcp.instructions.as_ref().map(String::len).filter(|length| *length > MAX_INSTRUCTIONS)
        {
            return Err(format!(
                "mcp.instructions: it has {length} bytes; write at most {MAX_INSTRUCTIONS}, as it is in every prompt of the clients' models"
            ));
        }
        self.traces.check()?;
        modules::check(&self.modules, &self.module_name)?;
        for (name, server) in &self.mcp_servers {
            server.check(name).map_err(|fault| fault.to_string())?;
        }
        check_identifier(&self.user.id).map_err(|rule| format!("user.id: it has to be {rule}"))?;
        if let Some(name) = &self.chat.dialect {
            known_dialect(name).map_err(|error| format!("chat.dialect: {error}"))?;
        }
        check_limits(&self.limits)?;
        if let Some(upstream) = self.upstream.as_deref().filter(|upstream| !upstream.is_empty()) {
            address::check_upstream(upstream).map_err(|error| format!("upstream: {error}"))?;
        }
        if let Some(host) = self.allowed_hosts.iter().find(|host| host.is_empty() || host.contains('/')) {
            return Err(format!(
                "allowed_hosts: `{host}` is not the name of a host; write it without `http://`, such as \"rack.lan\""
            ));
        }
        Ok(())
    }
}

fn check_limits(limits: &Limits) -> Result<(), String> {
    let usual = Limits::default();
    for (key, value, usual) in [
        ("max_rounds", limits.max_rounds.into(), usual.max_rounds.into()),
        ("max_calls", limits.max_calls.into(), usual.max_calls.into()),
        ("max_identical_calls", limits.max_identical_calls.into(), usual.max_identical_calls.into()),
        ("max_seconds", limits.max_seconds, usual.max_seconds),
        ("idle_seconds", limits.idle_seconds, usual.idle_seconds),
    ] {
        if value == 0 {
            return Err(format!(
                "limits.{key}: 0 lets nothing through; write 1 or more, or leave it out for {usual}"
            ));
        }
    }
    if limits.max_tools_percent > 100 {
        return Err(format!(
            "limits.max_tools_percent: {} is not between 0 and 100; leave it out for {}",
            limits.max_tools_percent, usual.max_tools_percent
        ));
    }
    if !(64..=8192).contains(&limits.max_picture_edge) {
        return Err(format!(
            "limits.max_picture_edge: {} is not between 64 and 8192; leave it out for {}",
            limits.max_picture_edge, usual.max_picture_edge
        ));
    }
    Ok(())
}
