//! How much memory a call asks for.

#![allow(clippy::unwrap_used)]

use registry_core::{Caller, Permission, Registry, ToolCall, prelude::tool};
use serde_json::json;

/// Get the weather for a city.
#[tool]
async fn weather(
    /// City name.
    city: String,
    /// Days ahead.
    #[arg(default = 3, range = 1..=14)]
    days: u8,
) -> String {
    drop(city);
    if days > 0 { String::new() } else { "today".to_owned() }
}

/// More than these, and a call has become dearer.
const MOST: u64 = 12;

#[test]
fn a_plain_call_makes_few_allocations() {
    let registry = Registry::builder().build().unwrap();
    let context = registry.context(Caller::new("ada", Permission::User));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let once = || {
        let call = ToolCall::new("weather", json!({"city": "Oslo", "days": 2})).with_id("call_1");
        let mut outcome = None;
        let made = allocation_counter::measure(|| {
            let executing = std::pin::pin!(registry.execute(&context, call));
            outcome = futures_util::FutureExt::now_or_never(executing);
        });
        assert!(outcome.unwrap().is_success());
        made.count_total
    };
    // The first call makes the schema and the validator.
    once();
    let made = once();
    println!("allocations of one call: {made}");
    assert!(made <= MOST, "one call makes {made} allocations, more than {MOST}");
}
