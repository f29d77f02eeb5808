//! Where tools come from beside the compiled ones.

mod configured;
mod remote;

pub use configured::{ConfigFault, ConfiguredTool, ConfiguredTools, alias_of};
pub(crate) use remote::Offers;
pub use remote::{Offer, Remote, RemoteKind};
