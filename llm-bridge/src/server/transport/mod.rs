//! Connections: from the first to the last, how many there are, and how they go to the program that takes over.

pub(super) mod connections;
pub(super) mod handover;
pub(super) mod lifecycle;
pub(super) mod readiness;
pub(super) mod seats;
pub(super) mod serving;
