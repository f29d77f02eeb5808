//! Who sends a request: keys, sign-in, users, their accounts elsewhere and what admins do about them.

pub(super) mod access;
pub(super) mod accounts;
pub(super) mod admin;
pub(super) mod connected_accounts;
pub(super) mod erasure;
pub(super) mod identity;
pub(super) mod message;
pub(super) mod personas;
pub(super) mod protected_resource;
pub(super) mod refused_keys;
pub(super) mod session;
pub(super) mod sign_in;
pub(super) mod users;
