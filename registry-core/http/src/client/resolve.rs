//! Looking names up so that what is checked is what is connected to.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;

/// What may be reached beside the public internet.
#[derive(Debug, Default, Clone)]
pub(super) struct Allowed {
    pub(super) nets: Vec<IpNet>,
    pub(super) hosts: Vec<String>,
}

impl Allowed {
    pub(super) fn address(&self, address: IpAddr) -> Result<(), NotPublic> {
        let plain = address.to_canonical();
        if is_public(address) || self.nets.iter().any(|net| net.contains(&plain) || net.contains(&address)) {
            return Ok(());
        }
        Err(NotPublic(address))
    }

    fn host(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name.trim_end_matches('.')))
    }
}

/// An address that may not be reached.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{0} is not a public address")]
pub(super) struct NotPublic(IpAddr);

/// Gives only addresses that may be reached. One that may not makes the whole answer suspect: it is refused, not filtered.
pub(super) struct Checked {
    pub(super) allowed: Arc<Allowed>,
    pub(super) inner: Arc<dyn Resolve>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let trusted = self.allowed.host(name.as_str());
        let allowed = Arc::clone(&self.allowed);
        let answer = self.inner.resolve(name);
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = answer.await?.collect();
            if !trusted {
                addresses.iter().try_for_each(|address| allowed.address(address.ip()))?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Asks the system.
pub(super) struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
