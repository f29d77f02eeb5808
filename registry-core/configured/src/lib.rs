//! Tools that are defined in a file and not in code: a fixed answer, a compiled tool under another name, or a handler of the host.
//! Every fault is reported with file, line and tool, and the other tools of the file remain usable.
//!
//! ```
//! use registry_core::Registry;
//! use toolrack_configured::ToolFiles;
//!
//! let text = r#"
//! [[tools]]
//! name = "opening_hours"
//! description = "Get the opening hours."
//! type = "function"
//! handler = "opening_hours"
//! parameters = { type = "object" }
//! implementation = { type = "mock", mock_response = "9 to 17" }
//! "#;
//! let tools = ToolFiles::new().text("tools.toml", text).read();
//! assert!(tools.faults.is_empty());
//! let registry = Registry::builder().without_compiled().configured(tools).build()?;
//! assert!(registry.get("opening_hours").is_some());
//! # Ok::<(), registry_core::RegistryError>(())
//! ```

mod document;
mod reader;

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use registry_core::{ConfigFault, ConfiguredTools, Handler, compiled_tools};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The files that define tools, and the handlers that they may name.
#[derive(Default, derive_more::Debug)]
#[debug("ToolFiles({files:?}, {:?})", handlers.keys())]
#[must_use]
pub struct ToolFiles {
    files: Vec<(PathBuf, Option<String>)>,
    handlers: HashMap<String, Arc<dyn Handler>>,
}

impl ToolFiles {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file in TOML, JSON or YAML, by the extension of its name. It has at most 4 MiB.
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push((file.into(), None));
        self
    }

    /// Adds a text as if it were a file of this name.
    pub fn text(mut self, file: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.files.push((file.into(), Some(text.into())));
        self
    }

    /// Adds a handler that tools of type `internal` name.
    pub fn handler(mut self, name: impl Into<String>, handler: Arc<dyn Handler>) -> Self {
        self.handlers.insert(name.into(), handler);
        self
    }

    /// Reads the files: the tools that can be used, and all faults of the others.
    pub fn read(&self) -> ConfiguredTools {
        let compiled = compiled_tools();
        let find = |name: &str| compiled.iter().find(|tool| tool.name() == name).cloned();
        let known = reader::Known { compiled: &find, internal: &self.handlers };
        let mut all = ConfiguredTools::default();
        for (file, text) in &self.files {
            let read = match text.clone().map_or_else(|| read_bounded(file), Ok) {
                Ok(text) => reader::read(file, &text, &known),
                Err(message) => {
                    let file = file.display().to_string().into();
                    let fault = ConfigFault { file, line: 1, tool: None, message };
                    ConfiguredTools { tools: Vec::new(), faults: vec![fault] }
                }
            };
            all.tools.extend(read.tools);
            all.faults.extend(read.faults);
        }
        all
    }
}

/// The text of a configuration file.
///
/// # Errors
/// What is wrong with the file, to be put behind its name: it cannot be read, or has more than 4 MiB.
pub fn read_bounded(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 > MAX_FILE => Err("is larger than 4 MiB; split it".to_owned()),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}
