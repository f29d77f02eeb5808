use registry_core::prelude::*;

struct Client;

#[resource(tabel = "client")]
fn client() -> Client {
    Client
}

fn main() {}
