//! Runs the functions with `#[resource]`: each once what it asks for is there, independent ones at the same time.

use std::{any::TypeId, collections::HashMap, sync::Arc, time::Duration};

use tokio::task::{Id, JoinError, JoinSet};

use super::{AnyValue, Configuration, Made, Make, ResourceError, ResourcePlugin, settings::Unread};
use crate::{
    context::{Resources, ToolContext},
    future::BoxFuture,
    result::ToolError,
    text::plain_path,
};

impl Resources {
    /// Adds what the functions with `#[resource]` in this program provide, except for types that are already provided. A function that
    /// has nothing to provide, fails, panics or takes too long leaves the tools that need it off, with the reason. Needs a tokio runtime.
    ///
    /// # Errors
    /// Wrong settings, two functions for one type, and functions that cannot be put into an order: all that were found.
    pub async fn with_compiled(self, configuration: &Configuration) -> Result<Self, Vec<ResourceError>> {
        let mut plugins: Vec<&'static ResourcePlugin> = inventory::iter::<ResourcePlugin>().collect();
        plugins.sort_unstable_by_key(|plugin| (plugin.place.file, plugin.place.line));
        start(self, &plugins, configuration).await
    }
}

/// A function with its settings.
type Ready = (&'static ResourcePlugin, Option<AnyValue>);

async fn start(
    mut resources: Resources,
    plugins: &[&'static ResourcePlugin],
    configuration: &Configuration,
) -> Result<Resources, Vec<ResourceError>> {
    let mut errors = duplicates(plugins);
    let plugins: Vec<_> =
        plugins.iter().copied().filter(|plugin| !resources.provides_type(plugin.ty)).collect();
    errors.extend(cycle(&plugins));
    let mut waiting: Vec<Ready> = Vec::new();
    for plugin in plugins {
        match settings(plugin, configuration) {
            Ok(settings) => waiting.push((plugin, settings)),
            Err(Unread::Unset(how)) => resources.explain(plugin.ty, how),
            Err(Unread::Wrong(faults)) => errors.extend(faults),
        }
    }
    // What differs by request waits for nothing: its needs are looked up with each request.
    waiting.retain_mut(|(plugin, settings)| match plugin.make {
        Make::Once(_) => true,
        Make::ByRequest(make) => {
            let (plugin, settings): (&'static ResourcePlugin, _) = (plugin, settings.take());
            let provide = move |context: &ToolContext| match make(context, settings.as_ref()) {
                Ok(Some(value)) => Ok(value),
                Ok(None) => Err(plugin.how_to_provide()),
                Err(error) => Err(error.message().to_owned()),
            };
            resources.insert_any_by_request(plugin.ty, Arc::new(provide));
            false
        }
    });
    for (plugin, _) in &waiting {
        for asked in plugin.asks.iter().filter(|asked| resources.type_differs_by_request(asked.ty)) {
            let (name, place, needs) = (plugin.name, plugin.place, (asked.type_name)());
            errors.push(ResourceError::DiffersByRequest { name, place, needs });
        }
    }
    if !errors.is_empty() {
        // Several functions may read one table.
        let mut seen = Vec::new();
        errors.retain(|error| {
            !seen.contains(error) && {
                seen.push(error.clone());
                true
            }
        });
        return Err(errors);
    }
    run(&mut resources, waiting).await;
    Ok(resources)
}

fn settings(plugin: &ResourcePlugin, from: &Configuration) -> Result<Option<AnyValue>, Unread> {
    let read = plugin.settings.read.zip(plugin.table_read());
    read.map(|(read, table)| read(from, table)).transpose()
}

/// Runs the functions that run once.
async fn run(resources: &mut Resources, mut waiting: Vec<Ready>) {
    let mut running = JoinSet::new();
    let mut started: HashMap<Id, &'static ResourcePlugin> = HashMap::new();
    loop {
        let unsettled: Vec<TypeId> = waiting
            .iter()
            .map(|(plugin, _)| plugin.ty)
            .chain(started.values().map(|plugin| plugin.ty))
            .collect();
        let is_ready =
            |(plugin, _): &mut Ready| !plugin.asks.iter().any(|asked| unsettled.contains(&asked.ty));
        for (plugin, settings) in waiting.extract_if(.., is_ready) {
            let Make::Once(make) = plugin.make else { continue };
            let context = ToolContext::default().with_resources(resources.clone());
            if let Some(how) = plugin.asks.iter().find_map(|asked| asked.missing?(&context)) {
                resources.explain(plugin.ty, how);
                continue;
            }
            let task = running.spawn(within(plugin.timeout, make(context, settings)));
            started.insert(task.id(), plugin);
        }
        let Some(done) = running.join_next_with_id().await else {
            // Those that could not be made may have been waited for.
            if waiting.is_empty() {
                break;
            }
            continue;
        };
        let (id, made) = match done {
            Ok(done) => done,
            Err(error) => (error.id(), Err(panicked(error))),
        };
        let Some(plugin) = started.remove(&id) else { continue };
        match made {
            Ok(Some(value)) => resources.insert_any(plugin.ty, value),
            Ok(None) => resources.explain(plugin.ty, plugin.how_to_provide()),
            Err(error) => {
                let (file, line) = (plain_path(plugin.place.file), plugin.place.line);
                let error = error.message();
                tracing::warn!(resource = plugin.name, file, line, error, "resource_failed");
                resources.explain(plugin.ty, error.to_owned());
            }
        }
    }
}

async fn within(limit: Duration, make: BoxFuture<'static, Made>) -> Made {
    let late = || ToolError::failed(format!("it was not ready after {} s", limit.as_secs_f64()));
    tokio::time::timeout(limit, make).await.unwrap_or_else(|_| Err(late()))
}

fn panicked(error: JoinError) -> ToolError {
    let panic = error.try_into_panic().ok();
    let text = panic.as_ref().and_then(|panic| {
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied())
    });
    ToolError::failed(format!("its function panicked: {}", text.unwrap_or("without a message")))
}

impl ResourcePlugin {
    /// What a listing says where the function had nothing to provide.
    fn how_to_provide(&self) -> String {
        match (self.needs, self.table_read()) {
            (Some(needs), _) => needs.to_owned(),
            (None, Some(table)) => format!("it is provided with the right settings in [{table}]"),
            (None, None) => format!("`{}` in {} did not provide it", self.name, plain_path(self.place.file)),
        }
    }
}

fn duplicates(plugins: &[&'static ResourcePlugin]) -> Vec<ResourceError> {
    let mut first: HashMap<TypeId, &ResourcePlugin> = HashMap::new();
    let mut errors = Vec::new();
    for plugin in plugins {
        match first.get(&plugin.ty) {
            Some(first) => errors.push(ResourceError::Duplicate {
                type_name: (plugin.type_name)(),
                first: first.place,
                second: plugin.place,
            }),
            None => drop(first.insert(plugin.ty, plugin)),
        }
    }
    errors
}

/// Functions that need each other, if there are any.
fn cycle(plugins: &[&'static ResourcePlugin]) -> Option<ResourceError> {
    let by_type: HashMap<TypeId, &ResourcePlugin> =
        plugins.iter().map(|plugin| (plugin.ty, *plugin)).collect();
    // What asks only for what is in no cycle is in none itself.
    let mut left = plugins.to_vec();
    while let Some(free) = left
        .iter()
        .position(|plugin| !plugin.asks.iter().any(|asked| left.iter().any(|other| other.ty == asked.ty)))
    {
        left.remove(free);
    }
    // Every one that is left needs another that is left: followed long enough, they lead into a cycle.
    let mut path: Vec<&ResourcePlugin> = vec![*left.first()?];
    loop {
        let asks = path.last()?.asks;
        let next = asks.iter().find_map(|asked| {
            by_type.get(&asked.ty).filter(|_| left.iter().any(|other| other.ty == asked.ty))
        })?;
        if let Some(at) = path.iter().position(|plugin| plugin.ty == next.ty) {
            let names = path.drain(at..).map(|plugin| (plugin.name, plugin.place)).collect();
            return Some(ResourceError::Cycle(names));
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Instant,
    };

    use super::*;
    use crate::{
        context::Caller,
        plugin::{Place, millis},
        policy::Permission,
        provide::{Asked, gives, no_settings},
    };

    struct One(u32);
    struct Two(u32);

    const fn place(file: &'static str) -> Place {
        Place { module_path: "", file, line: 7 }
    }

    const fn plugin<T: Send + Sync + 'static>(
        name: &'static str,
        file: &'static str,
        asks: &'static [Asked],
        make: Make,
    ) -> ResourcePlugin {
        ResourcePlugin::new(name, &gives::<T>(), no_settings(), asks, make, place(file))
    }

    const ASKS_ONE: &[Asked] = &[Asked::of::<One>()];
    const ASKS_TWO: &[Asked] = &[Asked::of::<Two>()];

    fn one() -> Make {
        Make::Once(|_, _| Box::pin(async { gives::<One>().value(One(1)) }))
    }

    fn two() -> Make {
        Make::Once(|context, _| {
            Box::pin(
                async move { gives::<Two>().option(context.resource::<One>().map(|one| Two(one.0 + 1))) },
            )
        })
    }

    fn started(plugin: ResourcePlugin) -> &'static ResourcePlugin {
        Box::leak(Box::new(plugin))
    }

    async fn start_all(plugins: Vec<ResourcePlugin>) -> Result<Resources, Vec<String>> {
        let plugins: Vec<_> = plugins.into_iter().map(started).collect();
        let started = start(Resources::new(), &plugins, &Configuration::default()).await;
        started.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn missing<T: Send + Sync + 'static>(resources: &Resources) -> String {
        resources.get::<T>(&ToolContext::default()).err().unwrap()
    }

    #[tokio::test]
    async fn p1_a_resource_gets_the_one_that_it_asks_for_in_whatever_order_they_stand() {
        for turned in [false, true] {
            let mut plugins = vec![
                plugin::<One>("one", "one.rs", &[], one()),
                plugin::<Two>("two", "two.rs", ASKS_ONE, two()),
            ];
            if turned {
                plugins.reverse();
            }
            let resources = start_all(plugins).await.unwrap();
            assert_eq!(resources.get::<Two>(&ToolContext::default()).unwrap().0, 2);
        }
    }

    #[tokio::test]
    async fn p1_two_resources_of_one_type_are_an_error_with_both_files() {
        let plugins =
            vec![plugin::<One>("one", "one.rs", &[], one()), plugin::<One>("other", "other.rs", &[], one())];
        assert_eq!(
            start_all(plugins).await.unwrap_err(),
            [
                "two functions provide `One`: one.rs:7 and other.rs:7; remove one, or give one a type of its own"
            ]
        );
    }

    #[tokio::test]
    async fn p1_resources_that_need_each_other_are_an_error_with_all_of_them() {
        let plugins = vec![
            plugin::<One>("one", "one.rs", ASKS_TWO, one()),
            plugin::<Two>("two", "two.rs", ASKS_ONE, two()),
        ];
        assert_eq!(
            start_all(plugins).await.unwrap_err(),
            [
                "these resources need each other, so none can be made first: `one` (one.rs:7) needs `two` (two.rs:7) needs `one`"
            ]
        );
        let itself = vec![plugin::<One>("one", "one.rs", ASKS_ONE, one())];
        assert!(
            start_all(itself).await.unwrap_err().concat().ends_with("first: `one` (one.rs:7) needs `one`")
        );
    }

    #[tokio::test]
    async fn p1_what_fails_leaves_the_tools_off_and_the_others_on() {
        let failing = |make| plugin::<One>("one", "one.rs", &[], make);
        let late = ResourcePlugin {
            timeout: millis(20),
            ..failing(Make::Once(|_, _| Box::pin(std::future::pending())))
        };
        let none = failing(Make::Once(|_, _| Box::pin(async { Ok(None) })));
        for (one, expected) in [
            (
                failing(Make::Once(|_, _| Box::pin(async { Err(ToolError::failed("no such host")) }))),
                "no such host",
            ),
            (
                failing(Make::Once(|_, _| Box::pin(async { panic!("at once") }))),
                "its function panicked: at once",
            ),
            (late, "it was not ready after 0.02 s"),
            (ResourcePlugin { needs: Some("the variable ONE"), ..none }, "the variable ONE"),
            (none, "`one` in one.rs did not provide it"),
        ] {
            let take = Make::Once(|context, _| {
                Box::pin(async move {
                    let need = crate::schema::parameter::need::<One>();
                    gives::<Two>().value(Two(need.take(&context)?.0))
                })
            });
            let resources =
                start_all(vec![one, plugin::<Two>("two", "two.rs", ASKS_ONE, take)]).await.unwrap();
            assert_eq!(missing::<One>(&resources), format!("needs One: {expected}"));
            assert_eq!(
                missing::<Two>(&resources),
                format!("needs Two: {expected}"),
                "what needs it says the same"
            );
        }
    }

    #[tokio::test]
    async fn p1_independent_resources_are_made_at_once() {
        static RUNNING: AtomicU32 = AtomicU32::new(0);
        fn both() -> BoxFuture<'static, Made> {
            Box::pin(async {
                RUNNING.fetch_add(1, Ordering::SeqCst);
                while RUNNING.load(Ordering::SeqCst) < 2 {
                    tokio::task::yield_now().await;
                }
                Ok(None)
            })
        }
        let begun = Instant::now();
        let plugins = vec![
            plugin::<One>("one", "one.rs", &[], Make::Once(|_, _| both())),
            plugin::<Two>("two", "two.rs", &[], Make::Once(|_, _| both())),
        ];
        start_all(plugins).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(9), "neither waited until the other was given up");
    }

    #[tokio::test]
    async fn p1_what_differs_by_request_is_made_for_each_and_cannot_be_made_before() {
        let by_request = Make::ByRequest(|context, _| {
            let name = context.caller().user.len();
            gives::<One>().option(u32::try_from(name).ok().filter(|name| *name > 0).map(One))
        });
        let one = plugin::<One>("one", "one.rs", &[], by_request);
        let named = || ResourcePlugin { needs: Some("a user with a name"), ..one };
        let resources = start_all(vec![named()]).await.unwrap();
        let ada = ToolContext::new(Caller::new("ada", Permission::User));
        assert_eq!(resources.get::<One>(&ada).unwrap().0, 3);
        let nobody = ToolContext::new(Caller::new("", Permission::User));
        assert_eq!(resources.get::<One>(&nobody).err().unwrap(), "needs One: a user with a name");

        let errors =
            start_all(vec![named(), plugin::<Two>("two", "two.rs", ASKS_ONE, two())]).await.unwrap_err();
        assert_eq!(
            errors,
            [
                "`two` (two.rs:7) runs once, and needs `One`, which differs by request; add `ctx: &ToolContext` to its parameters"
            ]
        );
    }

    #[tokio::test]
    async fn p1_what_the_host_provides_itself_wins() {
        let plugins = [started(plugin::<One>("one", "one.rs", &[], one()))];
        let resources =
            start(Resources::new().with(One(9)), &plugins, &Configuration::default()).await.unwrap();
        assert_eq!(resources.get::<One>(&ToolContext::default()).unwrap().0, 9);
    }
}
