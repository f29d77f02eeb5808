//! The registry as those who use it see it: tools as they are written, the path of a call, what guards it, and the life of tools.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::unused_async)]

mod b17_rules;
mod b19_asking;
mod b19_asking_anew;
mod b19_asking_in_failures;
mod b19_calls_and_state;
mod b19_results;
mod b20_flow;
mod b_deferral;
mod guards;
mod l_lifecycle;
mod l_properties;
mod l_stored;
mod p_resources;
mod p_tools;
mod p_types;
mod path;
mod path_steps;
mod store_behind;
mod t_guards_failing;
mod t_standing;
