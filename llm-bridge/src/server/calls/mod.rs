//! Tools, and what belongs to their calls: approvals, questions, schedules, files.

pub(super) mod approval_rules;
pub(super) mod approvals;
pub(super) mod execute;
pub(super) mod files;
pub(super) mod jobs;
pub(super) mod mcp_servers;
pub(super) mod modules;
pub(super) mod questions;
pub(super) mod schedule;
pub(super) mod tools;
pub(super) mod trials;
pub(super) mod written;
