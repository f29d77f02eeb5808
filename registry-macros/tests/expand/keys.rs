/// Forgets everything.
#[cfg(feature = "forget")]
#[tool(
    name = "forget_all",
    title = "Forget",
    version = "1.2.0-rc.1",
    tags = ["memory", "danger"],
    permission = Permission::Owner,
    cost = Cost::Cheap,
    timeout = secs(10),
    cooldown = minutes(1),
    daily_limit = 3,
    gate,
    effect = Effect::Destructive,
    idempotent = true,
    reads = private | untrusted,
    sends = outside,
    deferred,
    text_tag = "FORGET",
    enabled = |ctx| ctx.caller().level > Permission::Admin,
    deprecated = "use `forget`",
    crate = core_of_tools,
)]
async fn forget() {}

/// Says hello.
#[tool(example = "Greet Ada twice." => {"name": "Ada", "times": 2}, example = "Greet." => {})]
async fn hello(
    /// To whom.
    name: Option<&str>,
    /// How often.
    #[arg(default = 1)]
    times: u8,
) -> String {}
