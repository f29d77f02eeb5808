use registry_core::prelude::*;

struct Client;

#[args]
struct ClientSettings {
    /// Where it is.
    url: String,
}

#[resource(table = "[client]")]
fn client(settings: Settings<ClientSettings>) -> Client {
    let _ = &settings.url;
    Client
}

#[resource(table = "other")]
fn other() -> u8 {
    1
}

fn main() {}
