//! `#[resource]`, as it is written.

use std::path::{Path, PathBuf};

use registry_core::{
    Caller, Configuration, Registry, ResourceError, Resources, prelude::*, resource_tables, testing::TestHost,
};

/// The settings of the ferry.
#[args]
struct FerrySettings {
    /// Its harbour.
    harbour: String,
    /// Seats on each crossing.
    #[arg(default = 40, range = 1..=500)]
    seats: u32,
}

/// A ferry.
struct Ferry {
    harbour: String,
    seats: u32,
}

/// The ferry that tools book.
#[resource(timeout = secs(2))]
async fn ferry(settings: Settings<FerrySettings>) -> Result<Ferry, ToolError> {
    tokio::task::yield_now().await;
    match settings.harbour.as_str() {
        "" => Err(ToolError::failed("the harbour has no name")),
        harbour => Ok(Ferry { harbour: harbour.to_owned(), seats: settings.seats }),
    }
}

/// Who may board.
struct Gangway(String);

#[resource]
fn gangway(ferry: Resource<Ferry>) -> Gangway {
    Gangway(format!("the gangway of {}", ferry.harbour))
}

/// What a user keeps on board.
struct Locker(PathBuf);

#[resource(table = "ferry", needs = "a user with a name")]
fn locker(
    ctx: &ToolContext,
    settings: Settings<FerrySettings>,
    gangway: Option<Resource<Gangway>>,
) -> Option<Locker> {
    let user = &ctx.caller().user;
    let name = gangway.map_or_else(|| settings.harbour.clone(), |gangway| gangway.0.clone());
    (!user.is_empty()).then(|| Locker(Path::new(&name).join(user)))
}

/// Count the seats.
#[tool]
async fn seats_of_ferry(ferry: Resource<Ferry>) -> u32 {
    ferry.seats
}

/// Find the user's locker.
#[tool]
async fn find_locker(locker: Resource<Locker>) -> String {
    locker.0.display().to_string()
}

fn configured(table: Value) -> Configuration {
    Configuration {
        file: "toolrack.toml".into(),
        tables: Map::from_iter([("ferry".to_owned(), table)]),
        prefix: "TOOLRACK".into(),
        ..Configuration::default()
    }
}

async fn registry(table: Value) -> Registry {
    let resources = Resources::new().with_compiled(&configured(table)).await.unwrap();
    Registry::builder().resources(resources).build().unwrap()
}

async fn call(registry: &Registry, user: &str, tool: &str) -> String {
    let context = registry.context(Caller::new(user, Permission::User));
    registry.execute_tool(tool, json!({}), &context, None).await.for_model()
}

#[tokio::test]
async fn p1_a_function_provides_what_tools_ask_for() {
    let registry = registry(json!({"harbour": "Oslo"})).await;
    assert_eq!(call(&registry, "ada", "seats_of_ferry").await, "40");
    assert_eq!(call(&registry, "ada", "find_locker").await, "the gangway of Oslo/ada");
    assert_eq!(call(&registry, "bob", "find_locker").await, "the gangway of Oslo/bob");
}

#[tokio::test]
async fn p1_without_it_the_tools_are_off_with_the_reason() {
    let why = |registry: &Registry, tool: &str, user: &str| {
        let tool = registry.get(tool).unwrap();
        let context = registry.context(Caller::new(user, Permission::User));
        registry.why_not(&tool, &context).unwrap().message().to_owned()
    };
    let unset = registry(json!({})).await;
    let how = "needs Ferry: set `harbour` under [ferry] in toolrack.toml, or TOOLRACK_FERRY_HARBOUR";
    assert!(why(&unset, "seats_of_ferry", "ada").contains(how), "{}", why(&unset, "seats_of_ferry", "ada"));
    let failed = registry(json!({"harbour": ""})).await;
    assert!(why(&failed, "seats_of_ferry", "ada").contains("needs Ferry: the harbour has no name"));
    assert_eq!(call(&failed, "ada", "find_locker").await, "ada");
    assert!(why(&failed, "find_locker", "").contains("needs Locker: a user with a name"));
}

#[tokio::test]
async fn p1_wrong_settings_are_reported_once_however_many_read_them() {
    let errors = Resources::new()
        .with_compiled(&configured(json!({"harbour": "Oslo", "seats": 0, "seat": 1})))
        .await
        .unwrap_err();
    let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "[ferry]: `seats`: 0 is less than the minimum of 1",
            "[ferry]: there is no `seat`; did you mean `seats`?"
        ]
    );
    assert!(
        matches!(&errors[1], ResourceError::Settings { table, pointer, .. } if table == "ferry" && pointer == "/seat")
    );
}

#[test]
fn p1_a_host_learns_which_tables_are_read_and_where() {
    let tables = resource_tables();
    let [table] = tables.as_slice() else { panic!("{tables:?}") };
    assert_eq!(table.name, "ferry");
    assert!(table.place.file.ends_with("p_resources.rs"));
}

#[tokio::test]
async fn b12_a_test_calls_the_function() {
    let settings = Settings::new(FerrySettings { harbour: "Bergen".into(), seats: 3 });
    let ferry = ferry(settings).await.unwrap();
    assert_eq!(gangway(Resource::new(ferry)).0, "the gangway of Bergen");
    let host = TestHost::new().resource(Locker("here".into())).build();
    assert_eq!(host.call("find_locker", json!({})).await.for_model(), "here");
}
