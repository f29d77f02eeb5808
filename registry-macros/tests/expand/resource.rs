//! The table of the shop.

/// Opens the shop.
#[resource(table = "shop", needs = "the key", timeout = secs(5))]
async fn shop(settings: Settings<Shop>, http: Resource<Client>, log: Option<Resource<Log>>) -> Result<Option<Open>, Oops> {
    open(settings, http, log).await
}

#[resource]
fn till(ctx: &ToolContext, settings: Settings<Till>, shop: Resource<Open>) -> Drawer {
    Drawer::of(ctx, settings, shop)
}

#[cfg(unix)]
#[resource]
fn clock() -> Option<Clock> {
    None
}
