//! Which modules there are and how they are spoken to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use registry_core::{
    Caller, Effect, LOCAL_MODULE, Permission,
    flow::{Reads, Sends},
};
use reqwest::Url;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::settings::{
    BreakerSettings, RemoteKey, SettingsError, check_name, find_key, names, parse_url, seconds, some_names,
    some_seconds,
};

/// The modules that are slow by default.
const SLOW_MODULES: [&str; 4] = ["garmin", "renpho_biometrics", "claude_code", "deployer"];
/// The modules that guests may use by default, as far as their tools only read.
const GUEST_MODULES: [&str; 2] = [LOCAL_MODULE, "research"];

/// The modules and what holds for all of them. In a file:
///
/// ```toml
/// slow_modules = ["garmin"]
/// tool_execution_timeout = 120
/// default_guest_modules = "research,files"
///
/// [module_services]
/// research = "http://research:8000"
/// files = { url = "http://files:8000", pin = true, key_env = "FILES_KEY" }
/// garmin = "http://garmin:8000"
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
pub struct ModulesSettings {
    /// The modules, by the names that their tools have as a prefix.
    pub module_services: BTreeMap<String, ModuleSettings>,
    /// The names of those that may take longer. In a file a list, or a text with commas.
    #[serde(deserialize_with = "names")]
    pub slow_modules: BTreeSet<String>,
    /// How long a call of a slow module may take; in a file in seconds. 120 s.
    #[serde(deserialize_with = "seconds")]
    pub tool_execution_timeout: Duration,
    /// How long a call of any other module may take; in a file in seconds. 30 s.
    #[serde(deserialize_with = "seconds")]
    pub module_timeout: Duration,
    /// How long a module may take to say what tools it has; in a file in seconds. 10 s.
    #[serde(deserialize_with = "seconds")]
    pub discovery_timeout: Duration,
    /// The modules that guests may use who have no list of their own; `None` for those of their tools in `local` and `research` that
    /// only read. In a file a list, or a text with commas.
    #[serde(deserialize_with = "some_names")]
    pub default_guest_modules: Option<BTreeSet<String>>,
    /// When the circuit of a module that fails opens.
    pub breaker: BreakerSettings,
}

impl Default for ModulesSettings {
    fn default() -> Self {
        Self {
            module_services: BTreeMap::new(),
            slow_modules: SLOW_MODULES.map(str::to_owned).into(),
            tool_execution_timeout: Duration::from_secs(120),
            module_timeout: Duration::from_secs(30),
            discovery_timeout: Duration::from_secs(10),
            default_guest_modules: None,
            breaker: BreakerSettings::default(),
        }
    }
}

impl ModulesSettings {
    /// With one more module.
    pub fn with_module(mut self, name: impl Into<String>, module: ModuleSettings) -> Self {
        self.module_services.insert(name.into(), module);
        self
    }

    /// The caller, where it is a guest without a list of modules with that of all guests.
    pub fn for_guest(&self, caller: Caller) -> Caller {
        if caller.level > Permission::Guest || caller.allowed_modules.is_some() {
            return caller;
        }
        match &self.default_guest_modules {
            Some(modules) => caller.only_modules(modules),
            None => caller.only_modules(GUEST_MODULES).only_reading(),
        }
    }

    /// Whether these can be meant. The environment is not asked: what needs no module needs no key.
    ///
    /// # Errors
    /// What is wrong with the first module that cannot be spoken to.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.module_services.iter().try_for_each(|(name, module)| {
            let checked = check_name(name).map_err(|error| error.to_string());
            checked.and_then(|()| module.parse_url().map(drop)).map_err(wrong(name))
        })
    }

    /// How long a call of the module may take.
    pub(super) fn timeout_of(&self, name: &str, module: &ModuleSettings) -> Duration {
        let is_slow = module.slow || self.slow_modules.contains(name);
        let usual = if is_slow { self.tool_execution_timeout } else { self.module_timeout };
        module.timeout.unwrap_or(usual)
    }
}

/// What is wrong with a module's settings.
pub(super) fn wrong(module: &str) -> impl Fn(String) -> SettingsError {
    move |message| SettingsError { setting: format!("module_services.{module}"), message }
}

/// One module. In a file its URL, or a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct ModuleSettings {
    /// Where it is, without `/manifest` and `/execute`. It may be a private address: it is the operator's word.
    pub url: String,
    /// Whether its calls may take longer.
    pub slow: bool,
    /// Whether a tool that is new, or has changed since it was accepted, is off until it is accepted.
    pub pin: bool,
    /// The variable of the environment with the key that it asks for.
    pub key_env: Option<String>,
    /// The key itself, for a host that has it from elsewhere; it goes before `key_env` and cannot be in a file.
    #[serde(skip)]
    pub key: Option<RemoteKey>,
    /// How long a call may take, in place of what holds for slow or other modules; in a file in seconds.
    #[serde(deserialize_with = "some_seconds")]
    pub timeout: Option<Duration>,
    /// How many calls run there at once, of one user half of them; of each user twice the number run and wait. 16.
    pub concurrency: usize,
    /// The level that its tools ask for at least. Guest, so that a tool's own word holds.
    pub permission: Permission,
    /// What its tools do at least; a module's own word can only make it worse. Write.
    pub effect: Effect,
    /// What the results of its tools may hold, by their names without the module's, and `*` for all others. Both, where nothing is said.
    pub reads: BTreeMap<String, Reads>,
    /// Where the arguments of its tools go, in the same way. Outside, where nothing is said.
    pub sends: BTreeMap<String, Sends>,
    /// Whether the module is believed in both, for tools of which the operator says nothing.
    pub trust_flow: bool,
}

impl ModuleSettings {
    /// A module at a URL, with nothing else said.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// The key, where one is asked for.
    pub(super) fn find_key(&self) -> Result<Option<RemoteKey>, String> {
        find_key(self.key.as_ref(), self.key_env.as_deref())
    }

    /// The URL, checked.
    pub(super) fn parse_url(&self) -> Result<Url, String> {
        let url = parse_url(self.url.trim_end_matches('/'), "http://research:8000")?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("`url` has a `?` or `#` in it; write only the part before /manifest".to_owned());
        }
        Ok(url)
    }
}

/// Without its URL.
impl Default for ModuleSettings {
    fn default() -> Self {
        Self {
            url: String::new(),
            slow: false,
            pin: false,
            key_env: None,
            key: None,
            timeout: None,
            concurrency: 16,
            permission: Permission::Guest,
            effect: Effect::Write,
            reads: BTreeMap::new(),
            sends: BTreeMap::new(),
            trust_flow: false,
        }
    }
}

impl<'de> Deserialize<'de> for ModuleSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct UrlOrTable;
        impl<'de> Visitor<'de> for UrlOrTable {
            type Value = ModuleSettings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a URL, or a table with `url`")
            }

            fn visit_str<E: de::Error>(self, url: &str) -> Result<ModuleSettings, E> {
                Ok(ModuleSettings::new(url))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModuleSettings, A::Error> {
                let settings = ModuleSettings::deserialize(MapAccessDeserializer::new(map))?;
                if settings.url.is_empty() {
                    return Err(de::Error::missing_field("url"));
                }
                Ok(settings)
            }
        }
        deserializer.deserialize_any(UrlOrTable)
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Registry, ToolPolicy, ToolResult, ToolSpec, handler_fn};
    use serde_json::json;

    use super::*;

    fn read(settings: serde_json::Value) -> Result<ModulesSettings, String> {
        serde_json::from_value(settings).map_err(|error| error.to_string())
    }

    #[test]
    fn m12_settings_are_read_as_the_seed_writes_them() {
        let settings = read(json!({
            "module_services": {
                "research": "http://research:8000",
                "garmin": "http://garmin:8000/",
                "files": {"url": "http://files:8000", "pin": true, "key_env": "FILES_KEY", "timeout": 2.5, "effect": "read"},
            },
            "slow_modules": "garmin, renpho_biometrics",
            "tool_execution_timeout": 90,
            "default_guest_modules": ["research"],
        }))
        .unwrap();
        let timeout = |name: &str| settings.timeout_of(name, &settings.module_services[name]).as_secs_f64();
        assert_eq!([timeout("research"), timeout("garmin"), timeout("files")], [30.0, 90.0, 2.5]);
        let files = &settings.module_services["files"];
        assert!(files.pin && files.effect == Effect::Read && files.concurrency == 16, "{files:?}");
        assert_eq!(ModulesSettings::default().tool_execution_timeout.as_secs(), 120);

        let guest = settings.for_guest(Caller::default());
        assert_eq!(guest.allowed_modules.unwrap().into_iter().collect::<Vec<_>>(), ["research"]);
        let user = settings.for_guest(Caller::new("ada", Permission::User));
        assert_eq!(user.allowed_modules, None);
        let persona = settings.for_guest(Caller::default().only_modules(["files"]));
        assert_eq!(persona.allowed_modules.unwrap().into_iter().collect::<Vec<_>>(), ["files"]);
    }

    #[test]
    fn s16_the_defaults_are_those_of_the_seed() {
        let settings = ModulesSettings::default();
        let slow = "garmin,renpho_biometrics,claude_code,deployer".split(',').map(str::to_owned);
        assert_eq!(settings.slow_modules, slow.collect());

        let registry = Registry::builder().without_compiled().build().unwrap();
        for (name, effect) in [
            ("calculate", Effect::Read),
            ("note", Effect::Write),
            ("research.web_search", Effect::Read),
            ("research.save", Effect::Write),
            ("files.read", Effect::Read),
        ] {
            let policy = ToolPolicy { effect, ..ToolPolicy::new() };
            let run = handler_fn(|_, _| async { Ok(ToolResult::new("")) });
            registry.register(ToolSpec::new(name, json!({"type": "object"})), policy, Some(run)).unwrap();
        }
        let usable = |caller: Caller| -> Vec<String> {
            let selection = registry.select(&registry.context(settings.for_guest(caller)));
            selection.tools().iter().map(|tool| tool.name().to_owned()).collect()
        };
        assert_eq!(usable(Caller::default()), ["calculate", "research.web_search"]);
        assert_eq!(usable(Caller::new("ada", Permission::User)).len(), 5);
        assert_eq!(usable(Caller::default().only_modules(["research"])).len(), 2, "a list of one's own");
        // Whoever calls for a guest is bound as the guest is.
        let server = Caller::new("server", Permission::Admin);
        assert_eq!(usable(server.on_behalf_of(settings.for_guest(Caller::default()))).len(), 2);
    }

    #[test]
    fn m12_a_wrong_setting_is_reported() {
        for (settings, fault) in [
            (json!({"module_services": {"a": 1}}), "a URL, or a table with `url`"),
            (json!({"module_services": {"a": {"url": "http://a", "pins": true}}}), "unknown field `pins`"),
            (json!({"module_services": {"a": {"pin": true}}}), "missing field `url`"),
            (json!({"tool_execution_timeout": 0}), "greater than 0"),
            (json!({"tool_execution_timeout": -1}), "greater than 0"),
            (json!({"slow_modules": 3}), "a list of names"),
            (json!({"modules": {}}), "unknown field `modules`"),
        ] {
            let error = read(settings.clone()).unwrap_err();
            assert!(error.contains(fault), "{settings}: {error}");
        }
    }

    #[test]
    fn m12_names_urls_and_keys_are_checked() {
        for name in ["", "a.b", "a b", "ä", "local", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert_eq!(check_name("file_manager-2"), Ok(()));
        for url in ["", "research:8000", "ftp://a", "http://u:p@a", "http://a/?x=1", "http://a/#b", "http://"]
        {
            assert!(ModuleSettings::new(url).parse_url().is_err(), "{url}");
        }
        assert!(ModuleSettings::new("http://127.0.0.1:8000/sub/").parse_url().is_ok());
        let keyed =
            ModuleSettings { key_env: Some("TOOLRACK_NO_SUCH".into()), ..ModuleSettings::new("http://a") };
        assert!(keyed.find_key().unwrap_err().contains("TOOLRACK_NO_SUCH"));
        let keyed = ModuleSettings { key: Some(RemoteKey::new("tr_hidden")), ..keyed };
        assert_eq!(keyed.find_key().unwrap().unwrap().as_str(), "tr_hidden");
        assert!(!format!("{keyed:?}").contains("tr_hidden"));
        let broken =
            ModuleSettings { key: Some(RemoteKey::new("tr_hidden\n")), ..ModuleSettings::new("http://a") };
        let fault = broken.find_key().unwrap_err();
        assert!(fault.contains("no key has") && !fault.contains("hidden"), "{fault}");
    }
}
