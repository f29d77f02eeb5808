//! What operators and admins look at and do.

pub(super) mod audit;
pub(super) mod backup;
pub(super) mod configured;
pub(super) mod dev;
pub(super) mod doctor;
pub(super) mod examinations;
pub(super) mod health;
pub(super) mod metrics;
pub(super) mod restore;
pub(super) mod traces;
pub(super) mod turns;
pub(super) mod webhooks;
