//! Puts a registry together: what the host provides, and the compiled tools.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwap;
use jiff::Timestamp;

use crate::{
    clock::{Clock, SystemClock},
    guard::audit::{AuditSink, LogAudit},
    plugin::{Folder, Plugin},
    registry::{Registry, RegistryError, Shared, ToolSet},
    resource::Resources,
    tool::{Source, Tool},
};

/// Builds a [`Registry`].
pub struct RegistryBuilder {
    resources: Resources,
    audit: Arc<dyn AuditSink>,
    clock: Arc<dyn Clock>,
    compiled: bool,
}

impl Default for RegistryBuilder {
    fn default() -> Self {
        Self {
            resources: Resources::new(),
            audit: Arc::new(LogAudit),
            clock: Arc::new(SystemClock),
            compiled: true,
        }
    }
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryBuilder").field("resources", &self.resources).finish_non_exhaustive()
    }
}

impl RegistryBuilder {
    /// Provides a value to the tools that ask for its type.
    #[must_use]
    pub fn resource<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.resources = self.resources.with(value);
        self
    }

    /// Provides all of these.
    #[must_use]
    pub fn resources(mut self, resources: Resources) -> Self {
        self.resources = resources;
        self
    }

    /// Where the records of calls go. The log, where nothing is said.
    #[must_use]
    pub fn audit(mut self, audit: Arc<dyn AuditSink>) -> Self {
        self.audit = audit;
        self
    }

    /// The clock. The machine's own, where nothing is said.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Leaves out the compiled tools: only what the host registers.
    #[must_use]
    pub fn without_compiled(mut self) -> Self {
        self.compiled = false;
        self
    }

    /// Collects the compiled tools. Each one is logged; of two with one name the second is left out with an error in
    /// the log that names both places.
    ///
    /// # Errors
    /// When compiled tools are wanted and there is none, which is what a forgotten `use tools as _;` looks like.
    pub fn build(self) -> Result<Registry, RegistryError> {
        let created_at = self.clock.now();
        let (mut tools, mut duplicates) = (Vec::new(), Vec::new());
        if self.compiled {
            (tools, duplicates) = collect(created_at);
            if tools.is_empty() {
                return Err(RegistryError::Empty);
            }
        }
        let shared = Shared {
            tools: ArcSwap::from_pointee(ToolSet::from_tools(tools)),
            resources: Arc::new(self.resources),
            audit: self.audit,
            clock: self.clock,
            writing: Mutex::new(()),
            duplicates,
        };
        Ok(Registry { shared: Arc::new(shared) })
    }
}

/// The compiled tools, one of each name, in an order that does not depend on the linker; and those left out.
fn collect(created_at: Timestamp) -> (Vec<Arc<Tool>>, Vec<RegistryError>) {
    let folders: HashMap<&str, &'static str> =
        inventory::iter::<Folder>().map(|folder| (folder.module_path, folder.name)).collect();
    let mut all: Vec<Tool> = inventory::iter::<Plugin>()
        .map(|plugin| Tool::compiled(plugin, module_of(plugin, &folders), created_at))
        .collect();
    let place = |tool: &Tool| match tool.source() {
        Source::Compiled(place) => (place.file, place.line),
        Source::Host => ("", 0),
    };
    all.sort_unstable_by(|a, b| a.name().cmp(b.name()).then_with(|| place(a).cmp(&place(b))));
    let (mut tools, mut duplicates): (Vec<Arc<Tool>>, _) = (Vec::with_capacity(all.len()), Vec::new());
    for tool in all {
        match tools.last().filter(|last| last.name() == tool.name()) {
            Some(first) => {
                let error = RegistryError::Duplicate {
                    name: tool.name().to_owned(),
                    first: first.source(),
                    second: tool.source(),
                };
                tracing::error!("{error}");
                duplicates.push(error);
            }
            None => {
                tracing::info!("Loaded tool: {}", tool.name());
                tools.push(Arc::new(tool));
            }
        }
    }
    (tools, duplicates)
}

/// The folder that a plugin's Rust module is in.
fn module_of(plugin: &Plugin, folders: &HashMap<&str, &'static str>) -> &'static str {
    if folders.is_empty() {
        return "";
    }
    let mut path = plugin.place.module_path;
    while let Some((parent, _)) = path.rsplit_once("::") {
        if let Some(name) = folders.get(parent) {
            return name;
        }
        path = parent;
    }
    ""
}
