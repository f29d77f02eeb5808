use registry_core::prelude::*;

struct Client;

struct ClientSettings;

#[resource]
fn client(settings: Settings<ClientSettings>) -> Client {
    let _ = settings;
    Client
}

fn main() {}
