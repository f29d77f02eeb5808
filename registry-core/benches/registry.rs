//! A registry of a thousand tools: from start to ready, its definitions rendered, one call down the whole path.
//!
//! `cargo bench -p registry-core`

#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use divan::{Bencher, black_box};
use registry_core::{
    Caller, Permission, Place, Plugin, Registry, ToolCall, ToolContext, ToolResult,
    guard::audit::MemoryAudit,
    schema::Argument,
    trace::{SpanData, Trace, TraceParent, TraceSink},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

fn main() {
    divan::main();
}

/// The arguments of each tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Arguments {
    /// City name, such as Oslo.
    city: String,
    /// Days ahead, from 1 to 14.
    days: Option<u8>,
    /// Unit of the temperature.
    unit: Option<Unit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Metric,
    Imperial,
}

const fn tool(name: &'static str, line: u32) -> Plugin {
    const DESCRIPTION: &str = "Weather for a city, for as many days as are asked for.";
    let place = Place { module_path: module_path!(), file: file!(), line };
    Plugin::new(
        name,
        DESCRIPTION,
        &[&<Arguments as Argument>::WHOLE],
        || None,
        |_, arguments| {
            Box::pin(async move {
                let arguments: Arguments = serde_json::from_value(arguments.into())?;
                black_box(arguments.city.len());
                Ok(ToolResult::new(()))
            })
        },
        place,
    )
}

/// Each digit of each of the three places: 1,000 submissions.
macro_rules! thousand {
    () => { thousand!(@hundreds 0 1 2 3 4 5 6 7 8 9); };
    (@hundreds $($h:literal)*) => { $(thousand!(@tens $h 0 1 2 3 4 5 6 7 8 9);)* };
    (@tens $h:literal $($t:literal)*) => { $(thousand!(@ones $h $t 0 1 2 3 4 5 6 7 8 9);)* };
    (@ones $h:literal $t:literal $($o:literal)*) => {
        $(inventory::submit! { tool(concat!("tool_", $h, $t, $o), $h * 100 + $t * 10 + $o) })*
    };
}
thousand!();

fn registry() -> Registry {
    let registry = Registry::builder().build().unwrap();
    assert_eq!(registry.len(), 1000);
    registry
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// From nothing to a registry that answers and calls.
#[divan::bench]
fn start_to_ready(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| Registry::builder().build().unwrap());
}

/// Every schema made and compiled: what a server does at start beside that.
#[divan::bench(sample_count = 20)]
fn check_every_schema(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(registry).bench_local_values(|registry| registry.check().len());
}

/// The tools of one caller selected, and their definitions written as one JSON array.
#[divan::bench]
fn definitions_rendered(bencher: Bencher<'_, '_>) {
    let registry = registry();
    let context = registry.context(Caller::new("bench", Permission::Owner));
    let mut json = String::new();
    bencher.bench_local(|| {
        json.clear();
        let selection = registry.select(&context);
        for tool in selection.tools() {
            tool.write_definition(tool.name(), &mut json);
            json.push(',');
        }
        json.len()
    });
}

/// One call: find, level, predicate, arguments checked and read, run with timeout and panic caught, audit to a log nobody reads.
#[divan::bench]
fn one_call(bencher: Bencher<'_, '_>) {
    call(bencher, registry());
}

/// The same with its two audit records kept.
#[divan::bench]
fn one_call_audited_in_memory(bencher: Bencher<'_, '_>) {
    call(bencher, Registry::builder().audit(Arc::new(MemoryAudit::new(1024))).build().unwrap());
}

/// The same with a span that nobody sends.
#[divan::bench]
fn one_call_traced(bencher: Bencher<'_, '_>) {
    let trace = Trace::new(TraceParent::begin(true), Some(Arc::new(Nowhere)));
    call_with(bencher, registry(), |context| context.with_trace(trace));
}

struct Nowhere;

impl TraceSink for Nowhere {
    fn ended(&self, span: SpanData) {
        black_box(span);
    }

    fn has_content(&self) -> bool {
        false
    }
}

fn call(bencher: Bencher<'_, '_>, registry: Registry) {
    call_with(bencher, registry, |context| context);
}

fn call_with(bencher: Bencher<'_, '_>, registry: Registry, with: impl FnOnce(ToolContext) -> ToolContext) {
    let runtime = runtime();
    let context = with(registry.context(Caller::new("bench", Permission::User)));
    let arguments = json!({"city": "Oslo", "days": 3, "unit": "metric"});
    let call = || ToolCall::new("tool_500", arguments.clone());
    assert!(runtime.block_on(registry.execute(&context, call())).is_success());
    // In one task, so that what is measured is the call and not the runtime's way into it.
    bencher
        .with_inputs(|| (0..100).map(|_| call()).collect::<Vec<_>>())
        .input_counter(Vec::len)
        .bench_local_values(|calls| {
            runtime.block_on(async {
                for call in calls {
                    black_box(registry.execute(&context, call).await);
                }
            });
        });
}
