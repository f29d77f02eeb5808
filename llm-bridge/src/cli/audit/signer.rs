//! Signs the heads of this server's chains, and removes records that have become too old.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use registry_core::{
    Caller, Origin,
    clock::{Clock, SystemClock},
    guard::audit::{
        AuditSink,
        chain::Head,
        log::{AuditLog, LeftChain},
    },
    store::StoreError,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    head::{self, HeadStatement},
    key::SigningKey,
    rotation,
    sending::Destination,
};
use crate::{
    cli::settings::Settings,
    recorded::{Change, recorded},
};

/// How often is looked for records that have become too old.
const SWEEP: Duration = Duration::from_secs(3600);

/// Signs, until it is stopped.
pub(in crate::cli) struct HeadSigner {
    log: Arc<dyn AuditLog>,
    sink: Arc<dyn AuditSink>,
    key: SigningKey,
    key_file: PathBuf,
    destinations: Vec<Destination>,
    server: String,
    caller: Caller,
    interval: Duration,
    retention: Option<SignedDuration>,
    /// What was signed last, by tenant.
    signed: BTreeMap<String, Head>,
}

impl HeadSigner {
    /// `None` where nothing is to be signed or removed.
    ///
    /// # Errors
    /// When the key cannot be read or made, or the heads that were signed before are not this key's.
    pub(in crate::cli) async fn open(
        settings: &Settings,
        log: Arc<dyn AuditLog>,
        sink: Arc<dyn AuditSink>,
    ) -> Result<Option<Self>, String> {
        let places = settings.audit.places(&settings.data_dir)?;
        let retention = settings.audit.retention();
        if places.is_empty() && retention.is_none() {
            return Ok(None);
        }
        let key_file = settings.audit.key_file(&settings.data_dir);
        let key = SigningKey::open(&key_file)?;
        let keys = rotation::public_keys(&key_file)?;
        let server = settings.store.server.clone();
        let mut signed = BTreeMap::new();
        for place in &places {
            let heads = head::read(place, &keys).await.unwrap_or_else(|cause| {
                tracing::error!(cause, "audit_heads_not_readable");
                Vec::new()
            });
            let own = heads.into_iter().filter(|head| head.server == server);
            signed.extend(own.map(|head| (head.tenant.clone(), head.head())));
        }
        let destinations = places.into_iter().map(Destination::new).collect::<Result<_, _>>()?;
        let (caller, interval) = (settings.caller(), settings.audit.interval());
        Ok(Some(Self { log, sink, key, key_file, destinations, server, caller, interval, retention, signed }))
    }

    /// Signs at once, in each interval, and a last time when it is stopped.
    pub(in crate::cli) async fn run(mut self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sweeps = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                _ = ticks.tick() => if let Err(cause) = self.sign().await {
                    tracing::warn!(%cause, "audit_heads_not_signed");
                },
                _ = sweeps.tick() => match self.remove_old().await {
                    Ok(true) => sweeps.reset_immediately(),
                    Ok(false) => {}
                    Err(cause) => tracing::warn!(%cause, "audit_records_not_removed"),
                },
                () = stop.cancelled() => break,
            }
        }
        if let Err(cause) = self.sign().await {
            tracing::error!(%cause, "audit_heads_not_signed");
        }
    }

    async fn sign(&mut self) -> Result<(), StoreError> {
        // It may have another by now.
        match SigningKey::read(&self.key_file) {
            Ok(Some(key)) => self.key = key,
            Ok(None) => {}
            Err(cause) => tracing::error!(cause, "audit_key_not_readable"),
        }
        let heads = self.log.heads().await?;
        let gone = self.signed.keys().filter(|tenant| !heads.contains_key(*tenant));
        gone.for_each(|tenant| tracing::error!(tenant, "audit_was_removed"));
        for (tenant, head) in heads {
            let last = self.signed.get(&tenant);
            if last == Some(&head) {
                continue;
            }
            // A signature would vouch for what was done to it.
            if let Some(last) = last
                && self.log.hash(&tenant, last.seq).await?.as_ref() != Some(&last.sha256)
            {
                tracing::error!(tenant, seq = last.seq, "audit_was_rewritten: see `toolrack audit verify`");
                continue;
            }
            let line = self.statement(&tenant, &self.server, &head, false).signed(&self.key);
            self.destinations.iter_mut().for_each(|place| place.put(&tenant, &line));
            self.signed.insert(tenant, head);
        }
        for place in &mut self.destinations {
            place.deliver().await;
        }
        Ok(())
    }

    fn statement(&self, tenant: &str, server: &str, head: &Head, removed: bool) -> HeadStatement {
        HeadStatement {
            tenant: tenant.to_owned(),
            server: server.to_owned(),
            seq: head.seq,
            sha256: head.sha256.clone(),
            ts: SystemClock.now(),
            removed,
        }
    }

    /// Removes some of the records that have become too old, and says whether there may be more.
    async fn remove_old(&mut self) -> Result<bool, StoreError> {
        let Some(retention) = self.retention else { return Ok(false) };
        let mut removed_some = false;
        let before = SystemClock.now().checked_sub(retention).unwrap_or(Timestamp::MIN);
        for tenant in self.log.heads().await?.into_keys() {
            let Some(up_to) = self.log.last_before(&tenant, before).await? else { continue };
            self.remove(LeftChain { tenant, server: self.server.clone(), up_to }).await?;
            removed_some = true;
        }
        // Those of servers that are gone, whose names nobody has any more.
        for chain in self.log.left_since(before).await? {
            self.remove(chain).await?;
            removed_some = true;
        }
        Ok(removed_some)
    }

    /// Removes the beginning of a chain, and keeps a proof of it.
    async fn remove(&mut self, chain: LeftChain) -> Result<(), StoreError> {
        let LeftChain { tenant, server, up_to } = &chain;
        let proof = self.statement(tenant, server, up_to, true).signed(&self.key);
        let change = Change {
            command: "audit retention",
            tenant: tenant.clone(),
            arguments: json!({"server": server, "up_to": up_to.seq, "sha256": up_to.sha256}),
        };
        let remove = async {
            match *server == self.server {
                true => self.log.remove(tenant, up_to, &proof).await,
                false => self.log.remove_left(&chain, &proof).await,
            }
        };
        let removed = recorded(self.sink.as_ref(), &self.caller, Origin::Schedule, change, remove).await;
        removed.map_err(StoreError::unavailable)??;
        let name = format!("{tenant}\n{server}\nremoved");
        self.destinations.iter_mut().for_each(|place| place.put(&name, &proof));
        Ok(())
    }
}
