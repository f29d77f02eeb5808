use registry_core::prelude::*;

struct Client;

#[resource]
fn client(address: String, settings: &str) -> Client {
    let _ = (address, settings);
    Client
}

fn main() {}
