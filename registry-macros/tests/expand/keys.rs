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
    deferred,
    text_tag = "FORGET",
    enabled = |ctx| ctx.caller().level > Permission::Admin,
    deprecated = "use `forget`",
    crate = core_of_tools,
)]
async fn forget() {}
