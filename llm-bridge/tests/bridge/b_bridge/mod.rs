//! The bridge, from the client's request to the model server's and back: requirements B2, B5, B6 and B7.

mod approvals;
mod bounds;
mod calls;
mod client_tools;
mod crowded;
mod deferred;
mod deltas;
mod dialects;
mod faults;
mod http_errors;
mod leaving;
mod long_results;
mod messages;
mod oddities;
mod pictures;
mod questions;
mod reading;
mod recovery;
mod requests;
mod required;
mod results;
mod slow_requests;
mod unread;
