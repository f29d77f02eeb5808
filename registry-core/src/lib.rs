//! registry-core
