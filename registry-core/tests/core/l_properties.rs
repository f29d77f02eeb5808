//! Any changes in any order, beside the rules written down a second time: requirements L2, L3, L4, L5, B10.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proptest::prelude::*;
use registry_core::{
    Change, ChangeError, Registry, RegistryError, StoredRegistry, ToolPolicy, ToolRegistrySnapshot, ToolSpec,
    store::MemoryStore, testing::TestClock,
};
use serde_json::json;

#[derive(Debug, Clone)]
enum Step {
    Register(ToolSpec),
    Switch(String, bool),
    Remove(String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || prop::sample::select(vec!["a", "b", "c.d"]).prop_map(str::to_owned);
    let version = prop::sample::select(vec![None, Some("1.0.0"), Some("1.1.0"), Some("next")]);
    let spec = (name(), version, 0..2).prop_map(|(name, version, field)| ToolSpec {
        version: version.map(str::to_owned),
        ..ToolSpec::new(name, json!({ "field": field }))
    });
    let step = prop_oneof![
        2 => spec.prop_map(Step::Register),
        2 => (name(), any::<bool>()).prop_map(|(name, enabled)| Step::Switch(name, enabled)),
        1 => name().prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..40)
}

/// The rules, as plainly as they can be said.
#[derive(Default)]
struct Model(BTreeMap<String, (ToolSpec, bool)>);

impl Model {
    fn apply(&mut self, step: Step) -> Result<Option<&'static str>, RegistryError> {
        match step {
            Step::Register(spec) => {
                let name = spec.tool_name.clone();
                let kind = match self.0.get(&name) {
                    None => "registered",
                    Some((known, _)) if *known == spec => return Ok(None),
                    Some((known, _)) if known.version == spec.version => {
                        return Err(RegistryError::VersionUnchanged { name, version: spec.version });
                    }
                    Some(_) => "replaced",
                };
                self.0.insert(name, (spec, true));
                Ok(Some(kind))
            }
            Step::Switch(name, enabled) => match self.0.get_mut(&name) {
                None => Err(RegistryError::Unknown { name }),
                Some((_, on)) if *on == enabled => Ok(None),
                Some((_, on)) => {
                    *on = enabled;
                    Ok(Some(if enabled { "enabled" } else { "disabled" }))
                }
            },
            Step::Remove(name) => Ok(self.0.remove(&name).map(|_| "removed")),
        }
    }

    fn is(&self, snapshot: &ToolRegistrySnapshot) -> bool {
        let model = self.0.values().map(|(spec, enabled)| (spec, *enabled));
        model.eq(snapshot.tools.iter().map(|tool| (&tool.spec, tool.enabled)))
    }
}

fn registry() -> Registry {
    let clock = Arc::new(TestClock::at("2026-03-01T12:00:00Z".parse().unwrap()));
    Registry::builder().without_compiled().clock(clock).build().unwrap()
}

fn apply(registry: &Registry, step: Step) -> Result<(), RegistryError> {
    match step {
        Step::Register(spec) => registry.register(spec, ToolPolicy::new(), None).map(drop),
        Step::Switch(name, enabled) => registry.set_enabled(&name, enabled).map(drop),
        Step::Remove(name) => {
            registry.remove(&name);
            Ok(())
        }
    }
}

async fn apply_stored(stored: &StoredRegistry, step: Step) -> Result<(), RegistryError> {
    let done = match step {
        Step::Register(spec) => stored.register(spec, ToolPolicy::new(), None).await.map(drop),
        Step::Switch(name, enabled) => stored.set_enabled(&name, enabled).await.map(drop),
        Step::Remove(name) => stored.remove(&name).await,
    };
    done.map_err(|error| match error {
        ChangeError::Rule(error) => error,
        other => panic!("{other}"),
    })
}

proptest! {
    #[test]
    fn l2_l3_l5_the_rules_hold_and_each_change_is_one_event(steps in steps()) {
        let (registry, mut model) = (registry(), Model::default());
        let mut events = registry.subscribe();
        for step in steps {
            let (wanted, done) = (model.apply(step.clone()), apply(&registry, step));
            prop_assert_eq!(wanted.clone().map(drop), done);
            let event = events.try_recv().ok().map(|event| event.change.as_str());
            prop_assert_eq!(event, wanted.unwrap_or_default());
            prop_assert!(model.is(&registry.snapshot()));
        }
        let copy = self::registry();
        copy.restore(registry.snapshot()).unwrap();
        prop_assert_eq!(copy.snapshot(), registry.snapshot());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn b10_two_servers_keep_to_the_rules_as_one(servers_of in prop::collection::vec(any::<bool>(), 40), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Arc::new(MemoryStore::default());
            let servers =
                [registry().attach(store.clone()).await.unwrap(), registry().attach(store.clone()).await.unwrap()];
            let mut model = Model::default();
            let mut events = servers[0].registry().subscribe();
            for (second, step) in servers_of.into_iter().zip(steps) {
                let server = &servers[usize::from(second)];
                assert_eq!(model.apply(step.clone()).map(drop), apply_stored(server, step).await);
                assert!(model.is(&server.registry().snapshot()));
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
            assert_eq!(servers[0].registry().snapshot(), servers[1].registry().snapshot());
            let later = registry().attach(store).await.unwrap();
            assert_eq!(later.registry().snapshot(), servers[0].registry().snapshot());
            // Whoever only listens comes to the same switches.
            let mut heard = BTreeMap::new();
            while let Ok(event) = events.try_recv() {
                match event.change {
                    Change::Removed => drop(heard.remove(&event.tool)),
                    change => drop(heard.insert(event.tool, change != Change::Disabled)),
                }
            }
            let switches = model.0.iter().map(|(name, (_, enabled))| (name.clone(), *enabled)).collect();
            assert_eq!(heard, switches);
        });
    }
}
