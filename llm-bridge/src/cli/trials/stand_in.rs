//! A registry with the tools of another, of which none runs: what the model calls is noted.

use std::sync::Arc;

use parking_lot::Mutex;
use registry_core::{Registry, Selection, ToolError, ToolPolicy, handler_fn};
use serde_json::{Map, Value};

/// The calls that came through, each with its arguments as the tool would get them.
pub(super) type Calls = Arc<Mutex<Vec<(String, Map<String, Value>)>>>;

/// The tools of a selection, as the model sees them. Whoever asks may call all of them, and no call has an effect.
pub(super) fn stand_in(selection: &Selection) -> Result<(Registry, Calls), String> {
    let calls = Calls::default();
    let registry = Registry::builder().without_compiled().build().map_err(|error| error.to_string())?;
    for tool in selection.tools() {
        let policy = ToolPolicy {
            text_tag: tool.policy().text_tag,
            deferred: selection.is_deferred(tool),
            ..ToolPolicy::new()
        };
        let (name, calls) = (tool.name().to_owned(), Arc::clone(&calls));
        let note = handler_fn(move |_, arguments| {
            calls.lock().push((name.clone(), arguments));
            std::future::ready(Err(ToolError::failed("no tool runs while the model is tried")))
        });
        registry.register(tool.spec().clone(), policy, Some(note)).map_err(|error| error.to_string())?;
    }
    Ok((registry, calls))
}
