//! Tools of the registry as `toolrack-apis` defines them.

use registry_core::{Effect, Registry, RemoteKind, Source, Tool, flow::Sends};
use toolrack_apis::{Definer, Hints, Provider, Subject};

use crate::mcp::{self, McpSettings};

/// What a definition needs of a tool.
pub fn subject(tool: &Tool) -> Subject<'_> {
    let (spec, policy) = (tool.spec(), tool.policy());
    Subject {
        title: spec.title.as_deref(),
        output_schema: promises_results(tool).then_some(&spec.output_schema),
        hints: Some(Hints {
            read_only: policy.effect == Effect::Read,
            destructive: policy.effect == Effect::Destructive,
            idempotent: policy.idempotent,
            open_world: tool.sends() == Sends::Outside,
        }),
        ..Subject::new(&spec.tool_name, spec.described(), &spec.input_schema)
    }
}

/// Whether results are as the output schema says: clients refuse others, and whole lists with a schema that is none. For an MCP server
/// nobody here can promise either.
pub(crate) fn promises_results(tool: &Tool) -> bool {
    !matches!(tool.source(), Source::Remote(remote) if remote.kind == RemoteKind::Mcp)
}

/// Defines tools of a registry for a provider.
pub(crate) fn definer(provider: Provider, strict: bool, registry: &Registry, mcp: &McpSettings) -> Definer {
    let definer = Definer::new(provider);
    let definer = if strict { definer.strict() } else { definer };
    match provider {
        Provider::Mcp => definer.with_names(mcp::names(registry, mcp)),
        _ => definer,
    }
}

/// The definition of a tool for every provider, with what each loses, as one text to compare in a test.
///
/// ```
/// # use registry_core::{Tool, ToolPolicy, ToolSpec, Registry};
/// # use serde_json::json;
/// # let registry = Registry::builder().without_compiled().build().unwrap();
/// # let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// # registry.register(ToolSpec::new("weather", schema), ToolPolicy::new(), None).unwrap();
/// let tool = registry.get("weather").unwrap();
/// let snapshot = llm_bridge::snapshot(&tool);
/// assert!(snapshot.starts_with("# openai\n"));
/// // assert_eq!(snapshot, include_str!("weather.snapshot"));
/// ```
pub fn snapshot(tool: &Tool) -> String {
    toolrack_apis::snapshot(&subject(tool))
}
