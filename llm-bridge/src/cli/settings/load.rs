//! How the configuration is read: the file, what variables and flags lay over it.

use std::path::Path;

use registry_core::secret_variable;
use serde::Deserialize;
use toml::de::{DeTable, Deserializer};
use toolrack_configured::read_bounded;

use super::{
    Flags, Secret, Settings,
    flags::{API_KEY_VARIABLE, METRICS_KEY_VARIABLE, UPSTREAM_API_KEY_VARIABLE},
    modules, origins, unknown_key, upstreams,
    variables::{self, Unread},
    webhooks,
};
use crate::cli::address;

impl Settings {
    /// The default configuration file.
    pub(in super::super) const DEFAULT_FILE: &str = "toolrack.toml";

    /// Reads the file and applies the flags. `host_tables` are the host's own tables of the file.
    ///
    /// # Errors
    /// A text with file, line and what to do.
    pub fn load(flags: &Flags, host_tables: &[&str]) -> Result<Self, String> {
        let mut settings = match flags.config.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            Some(file) => Self::from_file(file, host_tables)?,
            None if Path::new(Self::DEFAULT_FILE).exists() => {
                Self::from_file(Path::new(Self::DEFAULT_FILE), host_tables)?
            }
            None => Self::default(),
        };
        settings.lay_over(flags.clone())?;
        settings.unread_variables = Unread::find(std::env::vars_os(), &settings.named_variables, host_tables);
        if settings.api_key.is_none() {
            settings.unread_variables.check_key()?;
        }
        Ok(settings)
    }

    /// Flags override the file.
    fn lay_over(&mut self, flags: Flags) -> Result<(), String> {
        self.given = flags.given();
        let set = |text: Option<String>| text.filter(|text| !text.is_empty());
        let key = |key: Option<Secret>| key.filter(|key| !key.0.is_empty());
        if let Some(text) = set(flags.listen) {
            self.listen = address::parse(&text).map_err(|error| format!("--listen: {error}"))?;
        }
        if let Some(upstream) = set(flags.upstream) {
            address::check_upstream(&upstream).map_err(|error| format!("--upstream: {error}"))?;
            self.upstream = Some(upstream);
            self.upstreams.clear();
        }
        self.upstream = set(self.upstream.take());
        self.model = set(flags.model).or_else(|| set(self.model.take()));
        let variable = |name| Ok::<_, String>(secret_variable(name)?.map(Secret));
        self.upstream_api_key = key(flags.upstream_api_key)
            .or(variable(UPSTREAM_API_KEY_VARIABLE)?)
            .or_else(|| key(self.upstream_api_key.take()));
        // An empty flag hides the variable; it must not turn the key off.
        self.api_key =
            key(flags.api_key).or(variable(API_KEY_VARIABLE)?).or_else(|| key(self.api_key.take()));
        self.metrics_key = variable(METRICS_KEY_VARIABLE)?.or_else(|| key(self.metrics_key.take()));
        if let Some(folder) = flags.data_dir.filter(|folder| !folder.as_os_str().is_empty()) {
            self.data_dir = folder;
        }
        self.store.lay_over(|name| std::env::var(name).ok())?;
        self.documents.lay_over(|name| std::env::var(name).ok())
    }

    fn from_file(file: &Path, host_tables: &[&str]) -> Result<Self, String> {
        let place = file.display();
        let text = read_bounded(file).map_err(|error| format!("{place} {error}"))?;
        let mut settings = Self::from_toml(&text, host_tables)
            .and_then(|settings| settings.check().map(|()| settings))
            .map_err(|error| format!("{place}: {error}"))?;
        settings.file = Some(file.to_owned());
        settings.written = origins::written(&text, &place.to_string());
        settings.named_variables = variables::named_in(&text);
        Ok(settings)
    }

    pub(in super::super) fn from_toml(text: &str, host_tables: &[&str]) -> Result<Self, String> {
        let with_text = |mut error: toml::de::Error| {
            // The error shows the line it is about.
            error.set_input(Some(text));
            match unknown_key::hint(error.message(), host_tables) {
                Some(hint) => error.to_string().replace(error.message(), &hint),
                None => error.to_string(),
            }
        };
        let mut tables = DeTable::parse(text).map_err(with_text)?;
        upstreams::name_single(tables.get_mut())?;
        for table in host_tables {
            tables.get_mut().remove(*table);
        }
        // A faulty tool does not stop the others, so tools are read separately.
        let tools = tables.get_mut().remove("tools");
        let modules = modules::take(&mut tables).map_err(with_text)?;
        let webhook_lines = webhooks::lines(tables.get_ref(), text);
        let mut settings = Self::deserialize(Deserializer::from(tables)).map_err(with_text)?;
        webhooks::check_secrets(&settings.webhooks, &webhook_lines)?;
        settings.modules = modules;
        settings.defines_tools = tools.is_some();
        settings.host = toml::from_str(text).map_err(with_text)?;
        settings.host.retain(|name, _| host_tables.contains(&name));
        Ok(settings)
    }

    /// Checks the text of a configuration file.
    ///
    /// # Errors
    /// A text with the line and what to do.
    pub(in super::super) fn check_text(text: &str, host_tables: &[&str]) -> Result<(), String> {
        Self::from_toml(text, host_tables).and_then(|settings| settings.check())
    }
}
